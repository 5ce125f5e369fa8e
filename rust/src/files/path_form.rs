//! Paths of files by the grid coordinates of their chunks: a form with `%d` for each, and `%%` for a percent sign.

use std::ffi::CString;
use std::io::Write;

/// What stands before each coordinate, and what stands behind the last.
pub struct PathForm {
    before: Vec<Vec<u8>>,
    end: Vec<u8>,
}

impl PathForm {
    pub fn new(form: &[u8]) -> Result<Self, String> {
        let (mut before, mut piece) = (Vec::new(), Vec::new());
        let mut bytes = form.iter();
        while let Some(&byte) = bytes.next() {
            match (byte, if byte == b'%' { bytes.next() } else { None }) {
                (b'%', Some(b'd')) => before.push(std::mem::take(&mut piece)),
                (b'%', Some(b'%')) => piece.push(b'%'),
                (b'%', _) => return Err("a form with another percent sign".into()),
                _ => piece.push(byte),
            }
        }
        Ok(PathForm { before, end: piece })
    }

    /// The path for as many coordinates as the form has.
    pub fn path(&self, coordinates: impl Iterator<Item = usize>) -> Result<CString, String> {
        let mut path = Vec::with_capacity(64);
        let mut pieces = self.before.iter();
        for coordinate in coordinates {
            path.extend(pieces.next().ok_or("more coordinates than a form has")?);
            write!(path, "{coordinate}").map_err(|error| error.to_string())?;
        }
        if pieces.next().is_some() {
            return Err("fewer coordinates than a form has".into());
        }
        path.extend(&self.end);
        CString::new(path).map_err(|_| "a path with a zero byte".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_take_their_places() {
        let path = |form: &str, coordinates: &[usize]| {
            let path = PathForm::new(form.as_bytes())?.path(coordinates.iter().copied())?;
            Ok::<_, String>(path.into_string().unwrap())
        };
        assert_eq!(path("/a%%d/c/%d/%d", &[12, 0]).unwrap(), "/a%d/c/12/0");
        assert_eq!(path("%d.%dx", &[1, usize::MAX]).unwrap(), format!("1.{}x", usize::MAX));
        assert_eq!(path("/a/0", &[]).unwrap(), "/a/0");
        for (form, coordinates) in [("%d", &[][..]), ("%d", &[1, 2]), ("a%", &[]), ("a%s", &[1]), ("a\0%d", &[1])] {
            assert!(path(form, coordinates).is_err(), "{form}");
        }
    }
}
