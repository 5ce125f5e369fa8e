// Reads arrays by zarrita.js, out of a folder where it is installed: node zarrita_reads.mjs < ["http://...", ...]
// Prints a JSON object for each: shape, data type, and the bytes of all elements, or the error; for {"group": "http://..."}
// what is known to be below it.
import * as zarr from "zarrita";

let text = "";
for await (const piece of process.stdin) text += piece;

for (const url of JSON.parse(text)) {
  try {
    if (url.group) {
      const store = await zarr.withMaybeConsolidatedMetadata(new zarr.FetchStore(url.group));
      console.log(JSON.stringify({ contents: store.contents() }));
      continue;
    }
    const array = await zarr.open(new zarr.FetchStore(url), { kind: "array" });
    const found = await zarr.get(array);
    if (array.shape.length === 0) {
      console.log(JSON.stringify({ dtype: array.dtype, shape: [], values: found }));
      continue;
    }
    const data = found.data;
    const plain = data instanceof Array || !data.buffer ? { values: Array.from(data) } : {
      bytes: Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64"),
    };
    console.log(JSON.stringify({ dtype: array.dtype, shape: found.shape, stride: found.stride, ...plain }));
  } catch (error) {
    console.log(JSON.stringify({ error: `${error.name}: ${error.message}` }));
  }
}
