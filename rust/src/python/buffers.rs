//! Buffers of Python objects, of any kind of element.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::sync::atomic::AtomicI64;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::memory::strided_memory::{SharedBytes, StridedMemory, StridedOutput};

/// A buffer, held until it is dropped. (PyO3's own takes no buffer without dimensions.)
///
/// While it is held, its exporter keeps the memory that it describes alive and in place: that is the contract of
/// Python's buffer protocol, which every exporter upholds (a `bytearray`, say, refuses to be resized). On nothing else
/// of what other Python code does can be relied: it may write into the memory at any time while the GIL is released.
pub struct Buffer<'py> {
    raw: Box<ffi::Py_buffer>,
    _py: Python<'py>,
}

impl<'py> Buffer<'py> {
    pub fn of(object: &Bound<'py, PyAny>, writable: bool) -> PyResult<Self> {
        let mut raw = Box::new(MaybeUninit::<ffi::Py_buffer>::uninit());
        let flags = if writable { ffi::PyBUF_FULL } else { ffi::PyBUF_FULL_RO };
        // SAFETY: `object` is alive and the GIL is held, as its lifetime proves; the structure is writable, and boxed,
        // so that it stays where it is filled.
        if unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), raw.as_mut_ptr(), flags) } != 0 {
            let error = PyErr::fetch(object.py());
            return Err(if error.is_instance_of::<PyTypeError>(object.py()) {
                error
            } else {
                PyValueError::new_err(format!("an unsuitable buffer: {error}"))
            });
        }
        // SAFETY: the call succeeded, and then it has filled the structure.
        let raw = unsafe { raw.assume_init() };
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
            // SAFETY: an exporter gives one value for each dimension, and keeps them as long as the buffer is held
            // (with `self`); `of` has checked that the pointer is not null.
            Ok(count) if count > 0 => unsafe { std::slice::from_raw_parts(values, count) },
            _ => &[],
        }
    }

    /// The memory as an array whose elements have `item` bytes.
    pub fn strided(&self, item: usize, ndim: usize) -> PyResult<StridedMemory<'_>> {
        self.check_form(item, ndim)?;
        // SAFETY: an exporter describes memory that is readable as long as the buffer is held, which the lifetime ties
        // to `self`.
        unsafe { StridedMemory::new(self.raw.buf.cast(), self.shape(), self.strides(), item) }
            .map_err(PyValueError::new_err)
    }

    /// The same, of a buffer that was asked for as writable.
    pub fn strided_output(&self, item: usize, ndim: usize) -> PyResult<StridedOutput<'_>> {
        self.check_form(item, ndim)?;
        if self.raw.readonly != 0 {
            return Err(PyValueError::new_err("an output that is read-only"));
        }
        // SAFETY: as in `strided`, and the exporter says that the memory is writable.
        unsafe { StridedOutput::new(self.raw.buf.cast(), self.shape(), self.strides(), item) }
            .map_err(PyValueError::new_err)
    }

    fn check_form(&self, item: usize, ndim: usize) -> PyResult<()> {
        let (itemsize, dimensions) = (self.raw.itemsize, self.raw.ndim);
        if usize::try_from(itemsize) != Ok(item) || usize::try_from(dimensions) != Ok(ndim) {
            return Err(PyValueError::new_err(format!(
                "a buffer of {dimensions} dimensions with elements of {itemsize} bytes, expected {ndim} and {item}"
            )));
        }
        Ok(())
    }

    fn check_contiguous(&self) -> PyResult<()> {
        // SAFETY: the structure is the one that `PyObject_GetBuffer` has filled, not released before `self` is
        // dropped.
        if unsafe { ffi::PyBuffer_IsContiguous(&*self.raw, b'C' as _) } == 0 {
            return Err(PyValueError::new_err("a buffer that is not C-contiguous"));
        }
        Ok(())
    }

    /// The memory as bytes, one after the other.
    pub fn bytes(&self) -> PyResult<SharedBytes<'_>> {
        self.check_contiguous()?;
        // SAFETY: a contiguous buffer is `len` bytes (never negative) from `buf` on, which are readable as long as it
        // is held, to which the lifetime ties the result.
        Ok(unsafe { SharedBytes::new(self.raw.buf.cast(), self.raw.len as usize) })
    }

    /// The memory as bytes, one after the other, which nobody changes.
    ///
    /// # Safety
    /// The buffer is that of an immutable object.
    pub unsafe fn constant_bytes(&self) -> PyResult<&[u8]> {
        self.check_contiguous()?;
        if self.raw.len == 0 {
            return Ok(&[]);
        }
        // SAFETY: as in `bytes`; the pointer of memory that has bytes is not null; the caller promises that they stay
        // the same.
        Ok(unsafe { std::slice::from_raw_parts(self.raw.buf.cast(), self.raw.len as usize) })
    }

    /// The memory as int64, one after the other.
    pub fn integers(&self) -> PyResult<&[AtomicI64]> {
        self.check_contiguous()?;
        let format = if self.raw.format.is_null() {
            c"B"
        } else {
            // SAFETY: an exporter gives a string that ends in NUL, and keeps it as long as the buffer is held.
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
        // SAFETY: contiguous, aligned, readable as long as the buffer is held, to which the lifetime ties the result.
        // As others may change them, they are atomic. The kernel only loads them, which read-only memory allows, too.
        Ok(unsafe { std::slice::from_raw_parts(self.raw.buf.cast(), self.raw.len as usize / 8) })
    }

    /// A copy of the memory, which is of int64.
    pub fn copied_integers(&self) -> PyResult<Vec<i64>> {
        Ok(self.integers()?.iter().map(|integer| integer.load(std::sync::atomic::Ordering::Relaxed)).collect())
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        // SAFETY: filled by `PyObject_GetBuffer`, and released here only, once; the GIL is held, as `_py` proves.
        unsafe { ffi::PyBuffer_Release(&mut *self.raw) };
    }
}

/// A copy of the integers of a buffer.
pub fn integers_of(object: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    Buffer::of(object, false)?.copied_integers()
}
