//! Workers hear of what the process is told: other settings, phases, files of TLS.

use super::config;
use super::files::Files;
use super::tls::InstanceTls;
use crate::control::{Control, Phase};
use respool_net::MailSender;
use respool_proxy::Mail;
use std::sync::Arc;

/// Passes on to an instance's workers what the process is told.
pub(super) fn follow(
    control: &Arc<Control>,
    number: usize,
    slots: Vec<MailSender<Mail>>,
    tls: Arc<InstanceTls>,
    files: Arc<Files>,
) {
    let told = std::sync::Mutex::new((Phase::Starting, 0, control.adoptions()));
    let weak = Arc::downgrade(control);
    control.on_change(Box::new(move || {
        let Some(control) = weak.upgrade() else { return };
        let mut told = told.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (phase, reloads, adoptions) = (control.phase(), control.reloads_of(number), control.adoptions());
        let mut mails = Vec::new();
        if adoptions != told.2 {
            // A parameter that a client sets reads no files here: it may come at any time, from a thread that serves others.
            let process = control.settings();
            if let Some(Err(failure)) = process.instances.get(number).map(|instance| tls.reload(instance)) {
                tracing::error!("TLS stays as it was: {}", failure.message);
            }
        }
        if reloads != told.1 {
            let process = control.settings();
            if let Some(instance) = process.instances.get(number) {
                let (of_clients, of_nodes) = config::transports(instance);
                slots.iter().for_each(|slot| {
                    // A worker that has ended needs no options.
                    slot.set_options(of_clients, of_nodes);
                });
            }
            let clients_max = files.clients_max(&process);
            let reloaded =
                process.instances.get(number).and_then(|instance| config::proxy(&process, instance, clients_max).ok());
            mails.extend(reloaded.map(|config| Mail::Reload(Arc::new(config))));
        }
        if phase != told.0 {
            match phase {
                Phase::Retiring => mails.push(Mail::Retire),
                Phase::Draining => mails.push(Mail::Drain),
                Phase::Stopping => mails.push(Mail::Stop),
                Phase::Starting | Phase::Serving | Phase::Leaving => {}
            }
        }
        *told = (phase, reloads, adoptions);
        for (slot, mail) in slots.iter().flat_map(|slot| mails.iter().map(move |mail| (slot, mail))) {
            // A worker that has ended needs to be told nothing.
            slot.post(mail.clone());
        }
    }));
}

/// Passes on to an instance's embedded nodes what of a reload is about them.
pub(super) fn follow_as_nodes(control: &Arc<Control>, number: usize, nodes: Vec<MailSender<Mail>>) {
    let weak = Arc::downgrade(control);
    let told = std::sync::atomic::AtomicU64::new(0);
    control.on_change(Box::new(move || {
        let Some(control) = weak.upgrade() else { return };
        let reloads = control.reloads_of(number);
        if nodes.is_empty() || told.swap(reloads, std::sync::atomic::Ordering::AcqRel) == reloads {
            return;
        }
        let process = control.settings();
        let Some(instance) = process.instances.get(number) else { return };
        let config = Arc::new(config::embedded_node(&process, instance));
        nodes.iter().for_each(|node| {
            // A node that has ended needs no settings.
            node.post(Mail::Reload(Arc::clone(&config)));
        });
    }));
}
