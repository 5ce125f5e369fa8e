//! Errors that a file system reports when a file is closed: NFS and FUSE may report a full disk or quota only then.

use std::fs::File;
use std::io;
use std::os::fd::IntoRawFd;

/// Return an error unless the file system has accepted all bytes that were written to `file`, which stays open.
///
/// The system flushes a file whenever one of its descriptors is closed, so this closes a second one.
pub fn flush(file: &File) -> io::Result<()> {
    loop {
        // SAFETY: the descriptor was made just now, and nothing else knows it.
        if unsafe { libc::close(file.try_clone()?.into_raw_fd()) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::{AsRawFd, FromRawFd};

    #[test]
    fn a_flushed_file_stays_open() {
        let path = std::env::temp_dir().join(format!("zardine-flush-{}", std::process::id()));
        let mut file = File::create(&path).unwrap();
        file.write_all(b"one").unwrap();
        flush(&file).unwrap();
        file.write_all(b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"onetwo");
        std::fs::remove_file(&path).unwrap();
        // SAFETY: no file has this number, and the value is never dropped.
        let none = std::mem::ManuallyDrop::new(unsafe { File::from_raw_fd(1 << 20) });
        assert_eq!(none.as_raw_fd(), 1 << 20);
        assert!(flush(&none).is_err());
    }
}
