//! The Python module `zardine._kernel`; `_kernel.pyi` documents it.

mod arguments;
mod block;
mod buffers;
mod byte_arrays;
mod contexts;
mod counting;
mod elements;
mod files;
mod pipeline_class;
mod rows;

use pyo3::prelude::*;

use crate::steps::sum;
use crate::threads::pool;

#[pyfunction]
#[pyo3(signature = (data, value = 0))]
fn crc32c(py: Python<'_>, data: &Bound<'_, PyAny>, value: u32) -> PyResult<u32> {
    let buffer = buffers::Buffer::of(data, false)?;
    let bytes = buffer.bytes()?;
    Ok(py.detach(|| {
        let mut sum = value;
        bytes.all_blocks(&mut [0; 4096], |block| {
            sum = sum::crc32c(sum, block);
            true
        });
        sum
    }))
}

#[pyfunction]
fn retire_threads(py: Python<'_>) {
    py.detach(pool::retire);
}

#[pyfunction]
fn version() -> &'static str {
    if cfg!(debug_assertions) { concat!(env!("CARGO_PKG_VERSION"), "+debug") } else { env!("CARGO_PKG_VERSION") }
}

#[pymodule]
fn _kernel(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<pipeline_class::PyPipeline>()?;
    module.add_class::<arguments::PyObjectFiles>()?;
    module.add_class::<arguments::PyStoredFiles>()?;
    module.add_class::<block::PyUniformGrid>()?;
    module.add_class::<elements::PyCrew>()?;
    module.add_class::<contexts::PySureExit>()?;
    module.add_class::<files::PyDescriptor>()?;
    module.add_class::<files::PyKnownFile>()?;
    module.add_class::<files::PyNewFiles>()?;
    module.add_function(wrap_pyfunction!(self::crc32c, module)?)?;
    module.add_function(wrap_pyfunction!(block::block_of_elements, module)?)?;
    module.add_function(wrap_pyfunction!(counting::find_cell_runs, module)?)?;
    module.add_function(wrap_pyfunction!(counting::find_extent, module)?)?;
    module.add_function(wrap_pyfunction!(counting::find_runs, module)?)?;
    module.add_function(wrap_pyfunction!(counting::number_cells, module)?)?;
    module.add_function(wrap_pyfunction!(counting::stable_order, module)?)?;
    module.add_function(wrap_pyfunction!(counting::take_rows, module)?)?;
    module.add_function(wrap_pyfunction!(counting::take_runs, module)?)?;
    module.add_function(wrap_pyfunction!(elements::encode_manifests, module)?)?;
    module.add_function(wrap_pyfunction!(elements::extend_shards, module)?)?;
    module.add_function(wrap_pyfunction!(elements::join_elements, module)?)?;
    module.add_function(wrap_pyfunction!(elements::join_pieces, module)?)?;
    module.add_function(wrap_pyfunction!(elements::make_cell_files, module)?)?;
    module.add_function(wrap_pyfunction!(elements::pack_elements, module)?)?;
    module.add_function(wrap_pyfunction!(elements::read_elements, module)?)?;
    module.add_function(wrap_pyfunction!(elements::read_element_parts, module)?)?;
    module.add_function(wrap_pyfunction!(elements::replace_elements, module)?)?;
    module.add_function(wrap_pyfunction!(elements::split_elements, module)?)?;
    module.add_function(wrap_pyfunction!(files::make_files, module)?)?;
    module.add_function(wrap_pyfunction!(files::open_new_files, module)?)?;
    module.add_function(wrap_pyfunction!(files::none_is_there, module)?)?;
    module.add_function(wrap_pyfunction!(files::are_current, module)?)?;
    module.add_function(wrap_pyfunction!(files::has_version, module)?)?;
    module.add_function(wrap_pyfunction!(files::put_files, module)?)?;
    module.add_function(wrap_pyfunction!(files::read_file, module)?)?;
    module.add_function(wrap_pyfunction!(files::read_files, module)?)?;
    module.add_function(wrap_pyfunction!(files::read_named_files, module)?)?;
    module.add_function(wrap_pyfunction!(files::remove_files, module)?)?;
    module.add_function(wrap_pyfunction!(retire_threads, module)?)?;
    module.add_function(wrap_pyfunction!(rows::cell_texts, module)?)?;
    module.add_function(wrap_pyfunction!(rows::decode_ranges, module)?)?;
    module.add_function(wrap_pyfunction!(rows::encode_tiles, module)?)?;
    module.add_function(wrap_pyfunction!(rows::find_cells, module)?)?;
    module.add_function(wrap_pyfunction!(rows::find_rows, module)?)?;
    module.add_function(wrap_pyfunction!(rows::line_parts, module)?)?;
    module.add_function(wrap_pyfunction!(rows::place_links, module)?)?;
    module.add_function(wrap_pyfunction!(rows::unique_rows, module)?)?;
    module.add_function(wrap_pyfunction!(version, module)?)
}
