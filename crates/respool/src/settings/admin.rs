//! The settings of the HTTP side and of statsd, and what has to be so for them to make sense.

use super::choices::DashboardReaders;
use super::config::{AdminSettings, DashboardSettings, StatsdSettings};
use super::raw::Origin;
use super::resolver::Resolver;
use super::row::{Secret, Value};
use super::table::Setting;
use super::values::{Values, saturating};

/// Characters of a token: it can be tried as often as an attacker likes, and stands in a header.
const TOKEN_CHARS: std::ops::RangeInclusive<usize> = 16..=256;

impl Resolver<'_> {
    pub(super) fn admin(&mut self, values: &[Value]) -> AdminSettings {
        let of = Values(values);
        let listen = of.tcp(Setting::Metrics);
        let token = self.token(&of);
        if token.is_some() && listen.is_none() {
            self.warnings
                .push("dashboard_token_file is without effect: there is no dashboard without metrics".to_owned());
        }
        let hosts = of.text(Setting::DashboardHosts).unwrap_or_default();
        AdminSettings {
            listen,
            ready_percent: of.count(Setting::ReadyNodes).map(saturating),
            dashboard: DashboardSettings {
                readers: DashboardReaders::ALL[of.word(Setting::Dashboard)],
                token,
                hosts: hosts.split_ascii_whitespace().map(str::to_owned).collect(),
            },
            statsd: StatsdSettings {
                address: of.tcp(Setting::Statsd),
                prefix: of.text(Setting::StatsdPrefix).map(str::to_owned),
                interval: of.duration(Setting::StatsdInterval).unwrap_or_default(),
            },
        }
    }

    fn token(&mut self, of: &Values<'_>) -> Option<Secret> {
        const FILE: Setting = Setting::DashboardTokenFile;
        let path = of.text(FILE)?;
        let origin = self.said.about(FILE, None).map_or(Origin::Default, |said| said.origin.clone());
        let token = self.secret_at(path, &origin)?;
        let is_fit = |text: &str| TOKEN_CHARS.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if is_fit(token.reveal()) {
            return Some(token);
        }
        let hint = format!(
            "{} to {} visible characters, as from: openssl rand -hex 16",
            TOKEN_CHARS.start(),
            TOKEN_CHARS.end()
        );
        self.blame(FILE, None, "its first line is no token", hint);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{RawSettings, resolve};

    #[test]
    fn a_token_is_long_enough_and_fits_a_header() {
        let mut said = RawSettings::default();
        said.hear_flag(Setting::Metrics, &["127.0.0.1:0".to_owned()]);
        said.hear_flag(Setting::DashboardTokenFile, &["/t".to_owned()]);
        let of = |text: &str| {
            resolve(&said, &|_| Ok(text.to_owned())).map(|resolved| resolved.process.admin.dashboard.token)
        };
        let right = "0123456789abcdef";
        assert_eq!(of(&format!("{right}\n")).unwrap().unwrap().reveal(), right);
        for wrong in ["0123456789abcde", "0123456789 abcdef", "0123456789abcde\u{e4}", &"x".repeat(257)] {
            let faults = of(wrong).expect_err(wrong).to_string();
            assert!(faults.contains("no token") && !faults.contains(wrong), "{faults}");
        }
    }

    #[test]
    fn a_token_without_a_listener_is_noted() {
        let mut said = RawSettings::default();
        said.hear_flag(Setting::DashboardTokenFile, &["/t".to_owned()]);
        let resolved = resolve(&said, &|_| Ok("0123456789abcdef".to_owned())).unwrap();
        assert!(
            resolved.warnings.iter().any(|warning| warning.contains("dashboard_token_file")),
            "{:?}",
            resolved.warnings
        );
    }
}
