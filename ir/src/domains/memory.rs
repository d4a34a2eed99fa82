//! Memory as the concrete domain sees it: bytes with an undefined shadow.

use super::concrete::{FaultKind, ShadowedBits};
use crate::bits::Bits;

/// Byte-addressed memory. Values are bytes in address order: byte i of the value lies at `address + i`.
pub trait Memory {
    /// Reads `bytes` bytes.
    ///
    /// # Errors
    /// Where a byte may not be read.
    fn load(&mut self, address: u64, bytes: u32) -> Result<ShadowedBits, FaultKind>;
    /// Writes a value whose width is a multiple of eight.
    ///
    /// # Errors
    /// Where a byte may not be written.
    fn store(&mut self, address: u64, value: &ShadowedBits) -> Result<(), FaultKind>;
}

/// No byte of it is mapped: for bodies that must not touch memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMemory;

impl Memory for NoMemory {
    fn load(&mut self, address: u64, bytes: u32) -> Result<ShadowedBits, FaultKind> {
        Err(FaultKind::Unmapped { address, bytes })
    }
    fn store(&mut self, address: u64, value: &ShadowedBits) -> Result<(), FaultKind> {
        Err(FaultKind::Unmapped { address, bytes: value.width() / 8 })
    }
}

/// One mapped range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// First address.
    pub address: u64,
    /// Contents; undefined bits are zero.
    pub bytes: Vec<u8>,
    /// Which bits of `bytes` are undefined, as long as it.
    pub undefined: Vec<u8>,
    /// Stores are allowed.
    pub writable: bool,
}

/// Memory made of disjoint regions; an access must lie in one of them wholly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegionMemory {
    /// Sorted by address.
    regions: Vec<Region>,
}

impl RegionMemory {
    /// Maps a region with defined contents. Returns false, and maps nothing, where it is empty, wraps around or overlaps another one.
    pub fn map(&mut self, address: u64, bytes: Vec<u8>, writable: bool) -> bool {
        let undefined = vec![0; bytes.len()];
        self.insert(Region { address, bytes, undefined, writable })
    }

    /// Maps `length` undefined writable bytes; as [`Self::map`].
    pub fn map_undefined(&mut self, address: u64, length: usize) -> bool {
        self.insert(Region { address, bytes: vec![0; length], undefined: vec![0xff; length], writable: true })
    }

    fn insert(&mut self, region: Region) -> bool {
        let Some(end) = region.address.checked_add(region.bytes.len() as u64) else { return false };
        let place = self.regions.partition_point(|other| other.address < region.address);
        let clear_below = place == 0 || {
            let below = &self.regions[place - 1];
            below.address + below.bytes.len() as u64 <= region.address
        };
        let clear_above = self.regions.get(place).is_none_or(|above| end <= above.address);
        let fits = !region.bytes.is_empty() && clear_below && clear_above;
        if fits {
            self.regions.insert(place, region);
        }
        fits
    }

    /// The region that holds `address`.
    pub fn region(&self, address: u64) -> Option<&Region> {
        let place = self.regions.partition_point(|region| region.address <= address);
        self.regions[..place].last().filter(|region| address - region.address < region.bytes.len() as u64)
    }

    /// All regions by ascending address.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    fn find(&mut self, address: u64, bytes: u32) -> Result<(&mut Region, usize), FaultKind> {
        let unmapped = FaultKind::Unmapped { address, bytes };
        let place = self.regions.partition_point(|region| region.address <= address);
        let region = self.regions[..place].last_mut().ok_or(unmapped.clone())?;
        let offset = address - region.address;
        let length = region.bytes.len() as u64;
        if offset < length && u64::from(bytes) <= length - offset { Ok((region, offset as usize)) } else { Err(unmapped) }
    }
}

impl Memory for RegionMemory {
    fn load(&mut self, address: u64, bytes: u32) -> Result<ShadowedBits, FaultKind> {
        let (region, offset) = self.find(address, bytes)?;
        let range = offset..offset + bytes as usize;
        let undefined = &region.undefined[range.clone()];
        let bits = Bits::from_bytes(&region.bytes[range]);
        Ok(if undefined.iter().all(|byte| *byte == 0) { bits.into() } else { ShadowedBits::new(bits, Bits::from_bytes(undefined)) })
    }

    fn store(&mut self, address: u64, value: &ShadowedBits) -> Result<(), FaultKind> {
        let bytes = value.width() / 8;
        let (region, offset) = self.find(address, bytes)?;
        if !region.writable {
            return Err(FaultKind::NotWritable { address, bytes });
        }
        let range = offset..offset + bytes as usize;
        region.bytes[range.clone()].copy_from_slice(&value.bits().to_bytes());
        match value.undefined() {
            Some(undefined) => region.undefined[range].copy_from_slice(&undefined.to_bytes()),
            None => region.undefined[range].fill(0),
        }
        Ok(())
    }
}
