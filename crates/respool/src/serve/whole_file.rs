//! Files that are written anew as a whole: the ACL file, and the file of a server's parameters. Both may hold passwords or their hashes.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Writes beside the file and puts that into its place, so that no reader sees half of it, and it is there after a failure of the system.
pub(super) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".tmp-{}", std::process::id()));
    // One that is there is a leftover of a process with the same number, or was put there: it is not written to.
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // It may hold passwords: no other user opens it before it is as closed as the file was.
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    let mut write = || {
        let mode = fs::metadata(path).map_or(0o600, |about| about.permissions().mode());
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.write_all(text)?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        fs::File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
    };
    let written = write();
    if written.is_err() {
        // What is left of it has hashes of passwords.
        let _ = fs::remove_file(&beside);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_keeps_its_permissions() {
        let directory = respool_testkit::TempDir::new().expect("a directory can be made");
        let path = directory.join("users.acl");
        replace(&path, b"one").expect("the directory can be written to");
        assert_eq!(fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("it is ours");
        replace(&path, b"two").expect("the directory can be written to");
        assert_eq!(fs::read(&path).expect("it is there"), b"two");
        assert_eq!(fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o640);
        assert!(replace(&directory.join("none/users.acl"), b"x").is_err());
        assert_eq!(fs::read_dir(directory.path()).expect("it is there").count(), 1, "nothing is left behind");
    }

    #[test]
    fn what_lies_beside_the_file_is_not_written_to() {
        let directory = respool_testkit::TempDir::new().expect("a directory can be made");
        let (path, foreign) = (directory.join("users.acl"), directory.join("foreign"));
        fs::write(&foreign, b"not ours").expect("the directory can be written to");
        let beside = directory.join(&format!("users.acl.tmp-{}", std::process::id()));
        std::os::unix::fs::symlink(&foreign, &beside).expect("the directory can be written to");
        replace(&path, b"one").expect("the directory can be written to");
        assert_eq!(fs::read(&foreign).expect("it is there"), b"not ours");
        assert_eq!(fs::read(&path).expect("it is there"), b"one");
        assert!(!fs::symlink_metadata(&path).expect("it is there").is_symlink());
    }
}
