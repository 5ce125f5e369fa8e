//! Bytearrays that the kernel makes: their memory is written once, and no object is seen before all of it is.

use std::mem::MaybeUninit;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

use super::arguments::invalid;
use super::pipeline_class::guarded;

/// A bytearray whose content is still to be written (PyO3 would first fill it with zeros). No one else knows of the
/// object before that is done; if it never is, the object goes.
pub struct NewByteArray<'py>(Bound<'py, PyByteArray>);

impl<'py> NewByteArray<'py> {
    /// An empty one. (One that is made with a length is freed half-made where there is not enough memory, of which
    /// CPython 3.11 complains.)
    pub fn new(py: Python<'py>) -> PyResult<Self> {
        Ok(NewByteArray(PyByteArray::new(py, &[])))
    }

    /// One of `size` bytes, all of which `fill` finds zero and writes; nothing where it says that it could not.
    pub fn made_by(
        py: Python<'py>,
        size: usize,
        fill: impl FnOnce(&mut [u8]) -> bool + Send,
    ) -> PyResult<Option<Bound<'py, PyByteArray>>> {
        let made = Self::made_together(py, &[size], |mut outs| outs.pop().is_some_and(fill))?;
        Ok(made.and_then(|mut made| made.pop()))
    }

    /// As `made_by`, of one for each of `sizes`.
    pub fn made_together(
        py: Python<'py>,
        sizes: &[usize],
        fill: impl FnOnce(Vec<&mut [u8]>) -> bool + Send,
    ) -> PyResult<Option<Vec<Bound<'py, PyByteArray>>>> {
        let mut contents = sizes.iter().map(|_| NewByteArray::new(py)).collect::<PyResult<Vec<_>>>()?;
        let outs = contents.iter_mut().zip(sizes).map(|(content, &size)| content.grow_with_zeros(size));
        let outs = outs.collect::<PyResult<Vec<_>>>()?;
        let is_done = guarded(py, || fill(outs))?;
        // SAFETY: zeros were written to all of each.
        Ok(is_done.then(|| contents.into_iter().map(|content| unsafe { content.filled() }).collect()))
    }

    /// One of `size` bytes, all of which `fill` finds zero and writes, with the GIL held: for little work.
    pub fn filled_by(py: Python<'py>, size: usize, fill: impl FnOnce(&mut [u8])) -> PyResult<Bound<'py, PyByteArray>> {
        let mut content = NewByteArray::new(py)?;
        fill(content.grow_with_zeros(size)?);
        // SAFETY: zeros were written to all of it.
        Ok(unsafe { content.filled() })
    }

    /// `more` bytes at the end, still to be written.
    pub fn grow(&mut self, more: usize) -> PyResult<&mut [MaybeUninit<u8>]> {
        let before = self.0.len();
        let size = before.checked_add(more).and_then(|size| ffi::Py_ssize_t::try_from(size).ok());
        let size = size.ok_or_else(|| invalid("too many bytes"))?;
        // SAFETY: the GIL is held, as `self.0` proves, and nobody else knows of the object; what it gains is not
        // initialized.
        if unsafe { ffi::PyByteArray_Resize(self.0.as_ptr(), size) } < 0 {
            return Err(PyErr::fetch(self.0.py()));
        }
        let (start, length) = (self.0.data().cast::<MaybeUninit<u8>>(), self.0.len());
        // SAFETY: the memory of the bytearray, which nobody else knows of, so that nobody resizes or uses it; the
        // object lives as long as `self`, to which the lifetime ties the result. Bytes that may be uninitialized need
        // not be anything.
        let memory = unsafe { std::slice::from_raw_parts_mut(start, length) };
        Ok(&mut memory[before..])
    }

    /// `more` zeros at the end, to be written over.
    pub fn grow_with_zeros(&mut self, more: usize) -> PyResult<&mut [u8]> {
        let memory = self.grow(more)?;
        memory.fill(MaybeUninit::new(0));
        // SAFETY: all of it has been written just now, and the borrow is handed on.
        Ok(unsafe { std::slice::from_raw_parts_mut(memory.as_mut_ptr().cast(), memory.len()) })
    }

    /// The object, for everybody to see.
    ///
    /// # Safety
    /// All its bytes have been written.
    pub unsafe fn filled(self) -> Bound<'py, PyByteArray> {
        self.0
    }
}

/// Numbers, as the bytes of native int64.
pub fn integers<'py>(py: Python<'py>, numbers: &[i64]) -> PyResult<Bound<'py, PyByteArray>> {
    let mut content = NewByteArray::new(py)?;
    let out = content.grow(size_of_val(numbers))?.as_chunks_mut().0;
    for (number, out) in numbers.iter().zip(out) {
        *out = number.to_ne_bytes().map(MaybeUninit::new);
    }
    // SAFETY: it has as many bytes as the numbers, each of which was written.
    Ok(unsafe { content.filled() })
}

/// Put numbers into as many bytes as they have.
pub fn write_integers(numbers: &[i64], out: &mut [u8]) {
    for (number, out) in numbers.iter().zip(out.as_chunks_mut().0) {
        *out = number.to_ne_bytes();
    }
}
