//! Rows that go behind those of cells: see `growing_cells`.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::arguments::invalid;
use super::buffers::Buffer;
use super::files::{PyDescriptor, PyKnownFile};
use super::pipeline_class::guarded;
use crate::cells::growing_cells::{GrowingCells, NewRows};
use crate::files::known_file::Identity;
use crate::files::new_files::{Base, NamesBeside};

/// Version of the document, and whether it is the last one; open files that no name means any more.
type Added = (String, bool, Vec<PyDescriptor>);

/// Cells of a level that get more rows, in arrays that have the same ones.
#[pyclass(frozen, module = "zardine._kernel", name = "GrowingCells")]
pub struct PyGrowingCells {
    cells: GrowingCells,
    beside: (Vec<u8>, Vec<u8>, Vec<u8>),
}

#[pymethods]
impl PyGrowingCells {
    #[new]
    #[pyo3(signature = (base, beside, documents, folders, names, sizes, around, form, *, closes))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        base: (Vec<u8>, Vec<u8>),
        beside: (Vec<u8>, Vec<u8>, Vec<u8>),
        documents: Vec<Bound<'_, PyKnownFile>>,
        folders: Vec<OsString>,
        names: &Bound<'_, PyBytes>,
        sizes: Vec<usize>,
        around: (Vec<u8>, Vec<u8>),
        form: (usize, usize, u64, f64),
        closes: bool,
    ) -> PyResult<Self> {
        let (path, below) = base;
        let (sums, count, most, most_unused) = form;
        let folder = |path: OsString| CString::new(path.into_vec()).map_err(|_| invalid("a path with a zero byte"));
        if sizes.contains(&0) {
            return Err(invalid("rows without bytes"));
        }
        let cells = GrowingCells {
            base: Base::Named { path, below },
            documents: documents.iter().map(|file| file.get().0.clone()).collect(),
            folders: folders.into_iter().map(folder).collect::<PyResult<_>>()?,
            names: names.as_bytes().to_vec(),
            sizes,
            around,
            count,
            sums,
            most,
            most_unused,
            closes,
        };
        Ok(PyGrowingCells { cells, beside })
    }

    #[allow(clippy::too_many_arguments)]
    fn add_rows(
        &self,
        py: Python<'_>,
        keys: Vec<OsString>,
        shards: (Vec<i64>, Vec<i64>),
        edges: Vec<(usize, usize)>,
        places: &Bound<'_, PyBytes>,
        columns: Vec<Bound<'_, PyAny>>,
        contents: (Bound<'_, PyBytes>, Bound<'_, PyBytes>, Bound<'_, PyBytes>),
        version: &str,
        number: u64,
    ) -> PyResult<Option<Added>> {
        let keys: Vec<Vec<u8>> = keys.into_iter().map(OsStringExt::into_vec).collect();
        let held = columns.iter().map(|each| Buffer::of(each, false)).collect::<PyResult<Vec<_>>>()?;
        let columns = held.iter().map(Buffer::bytes).collect::<PyResult<Vec<_>>>()?;
        let new = NewRows {
            keys: &keys,
            bounds: &shards.0,
            rows: &shards.1,
            edges: &edges,
            places: places.as_bytes(),
            columns: &columns,
            head: contents.0.as_bytes(),
            agreed: contents.1.as_bytes(),
            settled: contents.2.as_bytes(),
            version,
        };
        let (start, edit, end) = self.beside.clone();
        let names = NamesBeside { start, edit, end, number };
        let added = guarded(py, || {
            let Some(outcome) = self.cells.add(&new, &names)? else { return Ok(None) };
            let closed = outcome.closed.into_iter().map(PyDescriptor::of).collect();
            let told = |document| Identity::from(document).version();
            let version = outcome.document.as_ref().map(|document| told(document.status()));
            // the lock of the document is let go here
            Ok(version.map(|version| (version, outcome.is_settled, closed)))
        })?;
        added.map_err(|reason: String| invalid(reason))
    }
}
