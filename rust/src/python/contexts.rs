//! Contexts of `with` that are left for sure, whenever Ctrl-C is pressed.

use pyo3::exceptions::PyException;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// The base of a class whose `__exit__` does what its method `_exit` says. Python may raise `KeyboardInterrupt` when a
/// method written in it begins, before anything is done; nothing comes between `with` and this one, which asks again.
#[pyclass(subclass, frozen, name = "SureExit", module = "zardine._kernel")]
pub struct PySureExit;

#[pymethods]
impl PySureExit {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(_arguments: &Bound<'_, PyTuple>, _named: Option<&Bound<'_, PyDict>>) -> Self {
        PySureExit
    }

    fn __exit__(
        this: &Bound<'_, Self>,
        _kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let py = this.py();
        let leave = || this.call_method1(intern!(py, "_exit"), (error,)).map(drop);
        match leave() {
            Err(interrupt) if !interrupt.is_instance_of::<PyException>(py) => leave().and(Err(interrupt)),
            done => done,
        }
    }
}
