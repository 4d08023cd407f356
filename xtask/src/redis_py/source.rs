//! The client's source distribution and an environment to run its tests in, fetched once into the target directory, and the
//! certificates that its tests of TLS look for, made here.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use crate::{command, setup};

const VERSION: &str = "8.1.0";
/// What the tests import beside the client.
const PACKAGES: [&str; 7] =
    ["pytest", "pytest-asyncio", "pytest-timeout", "numpy", "xxhash", "pybreaker", "redis-entraid==1.2.1"];
/// What is loaded into pytest, and its module's name.
const PLUGIN: &str = include_str!("plugin.py");
pub(super) const PLUGIN_NAME: &str = "respool_plugin";
/// Where the tests look for certificates.
const CERTIFICATES: &str = "dockers/standalone/tls";
/// The authority, and those that it signs: file, common name.
const AUTHORITY: &str = "ca";
const SIGNED: [(&str, &str); 3] = [("redis", "localhost"), ("client", "client"), ("test_user", "test_user")];

/// Where the client's source is unpacked, after it was fetched if need be, with an environment to run it in.
pub(super) fn locate() -> io::Result<PathBuf> {
    let directory = command::target_directory()?.join("suites").join("redis-py");
    let suite = directory.join(format!("redis-{VERSION}"));
    let fetched = fetch(&directory, &suite);
    fetched.map(|()| suite.clone()).map_err(|error| {
        let place = suite.display();
        io::Error::other(format!(
            "cannot fetch the tests of redis-py {VERSION} ({error}); unpack its source as {place}"
        ))
    })
}

fn fetch(directory: &Path, suite: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let environment = directory.join("venv");
    let pip = || {
        let mut pip = Command::new(environment.join("bin").join("python"));
        pip.current_dir(directory).args(["-m", "pip", "--quiet", "--disable-pip-version-check"]);
        pip
    };
    // A list of other packages than before is installed again.
    let (installed, wanted) = (environment.join("installed"), PACKAGES.join("\n"));
    if fs::read_to_string(&installed).ok().as_ref() != Some(&wanted) {
        let python = setup::find("python3").ok_or_else(|| io::Error::other("no python3 here"))?;
        command::run(Command::new(python).args(["-m", "venv"]).arg(&environment))?;
        command::run(pip().arg("install").args(PACKAGES))?;
        fs::write(installed, wanted)?;
    }
    if !suite.join("tests").join("conftest.py").is_file() {
        let wanted = format!("redis=={VERSION}");
        command::run(pip().args(["download", "--no-deps", "--no-binary", "redis", &wanted]))?;
        command::run(Command::new("tar").current_dir(directory).args(["-xzf", &format!("redis-{VERSION}.tar.gz")]))?;
    }
    fs::write(suite.join(PLUGIN_NAME).with_extension("py"), PLUGIN)?;
    certify(&suite.join(CERTIFICATES))
}

/// The file of a certificate's or its key's, by what it is for.
pub(super) fn certificate(suite: &Path, file: &str) -> String {
    suite.join(CERTIFICATES).join(file).display().to_string()
}

/// Makes an authority and what it signs, if they are not there.
fn certify(directory: &Path) -> io::Result<()> {
    if SIGNED.iter().all(|(name, _)| directory.join(name).with_extension("crt").is_file()) {
        return Ok(());
    }
    fs::create_dir_all(directory)?;
    let openssl = |arguments: &str| {
        let mut openssl = Command::new("openssl");
        openssl.current_dir(directory).args(arguments.split(' '));
        command::capture(&mut openssl).map(drop)
    };
    let new = "req -newkey rsa:2048 -nodes";
    openssl(&format!("{new} -x509 -days 3650 -keyout {AUTHORITY}.key -out {AUTHORITY}.crt -subj /CN=authority"))?;
    fs::write(directory.join("names"), "subjectAltName=DNS:localhost,IP:127.0.0.1\n")?;
    for (file, name) in SIGNED {
        openssl(&format!("{new} -keyout {file}.key -out {file}.csr -subj /CN={name}"))?;
        let authority = format!("-CA {AUTHORITY}.crt -CAkey {AUTHORITY}.key -CAcreateserial");
        openssl(&format!("x509 -req -in {file}.csr {authority} -days 3650 -extfile names -out {file}.crt"))?;
    }
    Ok(())
}
