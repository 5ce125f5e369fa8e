//! Buffers of Python objects, of any kind of element.

use std::ffi::CStr;
use std::mem::MaybeUninit;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::strided_memory::{BorrowedBytes, StridedMemory};

/// A buffer, held until it is dropped. (PyO3's own takes no buffer without dimensions.)
pub struct Buffer<'py> {
    raw: Box<ffi::Py_buffer>,
    _py: Python<'py>,
}

impl<'py> Buffer<'py> {
    pub fn of(object: &Bound<'py, PyAny>, writable: bool) -> PyResult<Self> {
        let mut raw = Box::new(MaybeUninit::<ffi::Py_buffer>::uninit());
        let flags = if writable { ffi::PyBUF_FULL } else { ffi::PyBUF_FULL_RO };
        // SAFETY: the pointers are valid; on success the structure is filled.
        let raw = unsafe {
            if ffi::PyObject_GetBuffer(object.as_ptr(), raw.as_mut_ptr(), flags) != 0 {
                let error = PyErr::fetch(object.py());
                return Err(if error.is_instance_of::<PyTypeError>(object.py()) {
                    error
                } else {
                    PyValueError::new_err(format!("an unsuitable buffer: {error}"))
                });
            }
            raw.assume_init()
        };
        let buffer = Buffer { raw, _py: object.py() };
        let dimensions = buffer.raw.ndim != 0;
        if !buffer.raw.suboffsets.is_null()
            || (dimensions && (buffer.raw.shape.is_null() || buffer.raw.strides.is_null()))
        {
            return Err(PyValueError::new_err("a buffer without shape and strides, or with suboffsets"));
        }
        Ok(buffer)
    }

    pub fn shape(&self) -> Vec<usize> {
        self.dimensions(self.raw.shape).iter().map(|&length| length as usize).collect()
    }

    fn strides(&self) -> Vec<isize> {
        self.dimensions(self.raw.strides).to_vec()
    }

    fn dimensions(&self, values: *const ffi::Py_ssize_t) -> &[ffi::Py_ssize_t] {
        match usize::try_from(self.raw.ndim) {
            // SAFETY: the exporter gives one value for each dimension; not null, as `of` has checked.
            Ok(count) if count > 0 => unsafe { std::slice::from_raw_parts(values, count) },
            _ => &[],
        }
    }

    /// The memory as an array whose elements have `item` bytes.
    pub fn strided(&self, item: usize, ndim: usize) -> PyResult<StridedMemory> {
        let (itemsize, dimensions) = (self.raw.itemsize as usize, self.raw.ndim as usize);
        if itemsize != item || dimensions != ndim {
            return Err(PyValueError::new_err(format!(
                "a buffer of {dimensions} dimensions with elements of {itemsize} bytes, expected {ndim} and {item}"
            )));
        }
        Ok(StridedMemory { base: self.raw.buf.cast(), shape: self.shape(), strides: self.strides(), item })
    }

    fn check_contiguous(&self) -> PyResult<()> {
        // SAFETY: the buffer is held.
        if unsafe { ffi::PyBuffer_IsContiguous(&*self.raw, b'C' as _) } == 0 {
            return Err(PyValueError::new_err("a buffer that is not C-contiguous"));
        }
        Ok(())
    }

    /// The memory as bytes, one after the other.
    pub fn bytes(&self) -> PyResult<BorrowedBytes> {
        self.check_contiguous()?;
        // SAFETY: contiguous, and held as long as `self` is; the callers keep `self` while they use the bytes.
        Ok(unsafe { BorrowedBytes::new(self.raw.buf.cast(), self.raw.len as usize) })
    }

    /// The memory as int64, one after the other.
    pub fn integers(&self) -> PyResult<&[i64]> {
        self.check_contiguous()?;
        let format = if self.raw.format.is_null() {
            c"B"
        } else {
            // SAFETY: the exporter gives a string that ends in NUL.
            unsafe { CStr::from_ptr(self.raw.format) }
        };
        let kind = format.to_bytes();
        let native = matches!(kind, [.., b'l' | b'q']) && matches!(kind, [_] | [b'@' | b'=', _])
            || cfg!(target_endian = "little") && kind == b"<q";
        if !native || self.raw.itemsize != 8 {
            return Err(PyValueError::new_err(format!("a buffer of {format:?}, expected int64")));
        }
        if self.raw.len == 0 {
            return Ok(&[]);
        }
        if !self.raw.buf.cast::<i64>().is_aligned() {
            return Err(PyValueError::new_err("a buffer that is not aligned"));
        }
        // SAFETY: contiguous and aligned, and held as long as `self`.
        Ok(unsafe { std::slice::from_raw_parts(self.raw.buf.cast(), self.raw.len as usize / 8) })
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        // SAFETY: filled by `PyObject_GetBuffer`, released once, with the GIL held as `_py` proves.
        unsafe { ffi::PyBuffer_Release(&mut *self.raw) };
    }
}
