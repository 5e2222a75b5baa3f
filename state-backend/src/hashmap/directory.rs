//! [`Directory`]: which page a hash falls into, by the top bits of its distance from the smallest.
//!
//! Owns: places, and their doubling. Does not own: pages, and when they split (see [`Table`](super::Table)).
//! Runs on: the slot's thread.

use std::ops::Range;

/// The directory never has more places than this; beyond it, pages grow over their capacity. Hashes would have to
/// agree in far more bits than chance allows.
const PLACES_MAX: usize = 1 << 26;

/// Which page a hash falls into.
#[derive(Debug)]
pub(crate) struct Directory {
    /// The smallest hash of the interval.
    first: u64,
    /// How far the largest hash lies above the smallest.
    span: u64,
    /// `(hash - first) >> shift` is the place; 64 stands for a single place.
    shift: u32,
    /// The page of each place.
    places: Vec<u32>,
}

impl Directory {
    /// One page for the hashes `first..=first + span`.
    pub(crate) fn new(first: u64, span: u64) -> Self {
        Self { first, span, shift: 64 - span.leading_zeros(), places: vec![0] }
    }

    /// Gives each place a page of its own, in order, after doubling until there are this many; returns how many there are. Only for a
    /// directory of one page.
    pub(crate) fn cut_into(&mut self, pages: usize) -> u32 {
        while self.places.len() < pages && self.shift > 0 && self.places.len() < PLACES_MAX {
            self.double();
        }
        let places = self.places.len() as u32;
        self.places = (0..places).collect();
        places
    }

    #[inline]
    pub(crate) fn page(&self, hash: u64) -> usize {
        let offset = hash.wrapping_sub(self.first);
        debug_assert!(offset <= self.span, "the key's hash lies outside the table's key groups");
        let place = offset.checked_shr(self.shift).unwrap_or(0) as usize;
        self.places[place] as usize
    }

    /// How coarse the only page of a new directory is; a page of this value has one place.
    pub(crate) fn shift(&self) -> u32 {
        self.shift
    }

    /// Makes places for the halves of a page that is `page_shift` coarse; `false` if it cannot be halved.
    pub(crate) fn make_finer_than(&mut self, page_shift: u32) -> bool {
        if page_shift == self.shift {
            if page_shift == 0 || self.places.len() >= PLACES_MAX {
                return false;
            }
            self.double();
        }
        true
    }

    /// Whether `hash` lies in the upper half of a page that is cut in two halves `finer` coarse.
    #[inline]
    pub(crate) fn is_upper(&self, hash: u64, finer: u32) -> bool {
        ((hash - self.first) >> finer) & 1 == 1
    }

    /// Gives the upper half of the page that holds `hash` and was twice `finer` coarse to `new_page`.
    pub(crate) fn give_upper_half(&mut self, hash: u64, finer: u32, new_page: u32) {
        let places = self.places_of(hash, finer + 1);
        let middle = places.start + (1usize << (finer - self.shift));
        for place in middle..places.end {
            self.places[place] = new_page;
        }
    }

    /// The places of the page that holds `hash` and is `page_shift` coarse.
    fn places_of(&self, hash: u64, page_shift: u32) -> Range<usize> {
        let offset = hash.wrapping_sub(self.first);
        let coarse = offset.checked_shr(page_shift).unwrap_or(0);
        let finer = page_shift - self.shift;
        let start = (coarse << finer) as usize;
        start..(start + (1usize << finer)).min(self.places.len())
    }

    fn double(&mut self) {
        self.shift -= 1;
        let length = (self.span >> self.shift) as usize + 1;
        self.places = (0..length).map(|place| self.places[place >> 1]).collect();
    }

    #[cfg(test)]
    pub(crate) fn places(&self) -> usize {
        self.places.len()
    }
}
