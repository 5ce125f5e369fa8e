//! Files that a thread opens once more for itself: the system counts the users of each opening, and threads that read
//! little pieces through one wait for each other there. Sixteen of them are no faster than four, then.

use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};

use crate::files::readable::Readable;
use crate::files::stored_files::open_again;

/// Opening and closing a file take as long as so many reads wait for one other thread.
const OPENING: usize = 96;

/// A thread has no more of them at a time.
const MOST: usize = 4;

/// What a thread has for one call.
#[derive(Default)]
pub struct OwnFiles {
    /// Other threads that may read at the same time.
    others: usize,
    /// The newest last.
    files: Vec<OwnFile>,
}

struct OwnFile {
    /// As the caller opened it.
    fd: RawFd,
    reads: usize,
    /// Nothing before that is worth it.
    own: Option<File>,
}

impl OwnFiles {
    /// Begin a call of so many threads.
    pub fn begin(&mut self, threads: usize) {
        self.others = threads.saturating_sub(1);
        self.files.clear();
    }

    /// The same file, for so many more reads: as this thread has opened it, if that is worth it. `end` closes what it has.
    pub fn of<'a>(&mut self, from: Readable<'a>, reads: usize) -> Readable<'a> {
        let Readable::File(file) = from else { return from };
        let Some(fd) = file.staying_fd().filter(|_| self.others > 0) else { return from };
        let known = self.files.iter().position(|known| known.fd == fd).unwrap_or_else(|| {
            if self.files.len() == MOST {
                self.files.remove(0);
            }
            self.files.push(OwnFile { fd, reads: 0, own: None });
            self.files.len() - 1
        });
        let known = &mut self.files[known];
        known.reads = known.reads.saturating_add(reads);
        if known.own.is_none() && known.reads.saturating_mul(self.others) >= OPENING {
            known.own = open_again(fd);
            if known.own.is_none() {
                self.others = 0; // not again in this call
            }
        }
        known.own.as_ref().map_or(from, |own| Readable::File(file.through(own.as_raw_fd())))
    }

    /// Close them.
    pub fn end(&mut self) {
        self.begin(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::readable;
    use std::fs;

    fn bytes(from: Readable) -> Vec<u8> {
        let mut bytes = vec![0; 4];
        from.read(0, &mut bytes, &mut []).unwrap();
        bytes
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_same_file_is_read_through_another_opening() {
        let folder = std::env::temp_dir().join(format!("zardine-own-files-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let names = ["one", "two", "tri", "four", "five"];
        let files: Vec<File> = names
            .iter()
            .map(|name| {
                fs::write(folder.join(name), format!("{name}...")).unwrap();
                let file = File::open(folder.join(name)).unwrap();
                fs::remove_file(folder.join(name)).unwrap(); // and is there as long as it is open
                file
            })
            .collect();
        let staying = |file: &File| Readable::File(readable::File::new(file.as_raw_fd()));
        let mut own = OwnFiles::default();
        own.begin(3);
        let first = staying(&files[0]);
        assert!(own.of(first, OPENING / 2 - 1).is_same_file(&first));
        for _ in 0..2 {
            let other = own.of(first, 1);
            assert!(!other.is_same_file(&first));
            assert_eq!(bytes(other), b"one.");
        }
        for _ in 0..2 {
            for (file, name) in files.iter().zip(names) {
                assert_eq!(bytes(own.of(staying(file), OPENING)), format!("{name}...").as_bytes()[..4]);
                assert!(own.files.len() <= MOST);
            }
        }
        let passing = Readable::File(readable::File::of_size(files[0].as_raw_fd(), 6));
        assert!(own.of(passing, OPENING).is_same_file(&passing));
        own.end();
        assert!(own.files.is_empty() && own.of(first, OPENING).is_same_file(&first));
        fs::remove_dir_all(&folder).unwrap();
    }
}
