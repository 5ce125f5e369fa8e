//! Size of a chunk and where its elements lie in its encoded form.

/// The full shape of a chunk, with its strides in the encoded (transposed, C-order) form.
#[derive(Default)]
pub struct ChunkGeometry {
    extents: Vec<usize>,
    /// In bytes, one for each axis of the decoded chunk.
    pub strides: Vec<isize>,
    pub nbytes: usize,
    known: bool,
}

impl ChunkGeometry {
    /// Become the geometry of a chunk of `extents`; cheap if it is that already.
    pub fn set(&mut self, extents: impl Iterator<Item = usize> + Clone, order: &[usize], item: usize) -> Option<()> {
        if self.known && self.extents.iter().copied().eq(extents.clone()) {
            return Some(());
        }
        self.known = false;
        self.extents.clear();
        self.extents.extend(extents);
        self.strides.clear();
        self.strides.resize(self.extents.len(), 0);
        let mut nbytes = item;
        for &axis in order.iter().rev() {
            self.strides[axis] = nbytes as isize;
            nbytes = nbytes.checked_mul(self.extents[axis]).filter(|&nbytes| nbytes <= isize::MAX as usize)?;
        }
        self.nbytes = nbytes;
        self.known = true;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_follow_the_order() {
        let mut geometry = ChunkGeometry::default();
        geometry.set([2, 3, 5].into_iter(), &[2, 0, 1], 4).unwrap();
        assert_eq!((geometry.nbytes, geometry.strides.as_slice()), (120, [12isize, 4, 24].as_slice()));
        assert!(geometry.set([1 << 31, 1 << 31, 2].into_iter(), &[0, 1, 2], 8).is_none());
        geometry.set([].into_iter(), &[], 16).unwrap();
        assert_eq!(geometry.nbytes, 16);
    }
}
