//! The allocator of a component: a list of free blocks for each size, and a mark that moves up.
//!
//! An instance answers one round and is thrown away, and most of what a call allocates is written by the host:
//! one block for each column and each symbol. So taking a block is a few instructions, giving it back are
//! fewer, and nothing is ever joined or returned. What is taken and given back in turn stays within the memory
//! of its largest moment, which is all that a call needs.

#![allow(
    unsafe_code,
    reason = "it is an allocator; nothing runs beside it in a guest"
)]

use core::alloc::{GlobalAlloc, Layout};
use core::arch::wasm32::{memory_grow, memory_size};
use core::cell::UnsafeCell;
use core::ptr;

/// What every block is aligned to. A block that needs more is not taken back.
const ALIGN: usize = 8;
const BLOCK_BYTES_MIN: usize = 16;
const PAGE_BYTES: usize = 1 << 16;
/// Memory is asked of the host in so many pages, as long as it has them.
const PAGES_AT_ONCE: usize = 16;
/// Four sizes for each power of two.
const CLASSES: usize = 4 * usize::BITS as usize;

unsafe extern "C" {
    /// Where the linker ends what it placed.
    static __heap_base: u8;
}

#[global_allocator]
static ALLOCATOR: Allocator = Allocator(UnsafeCell::new(Heap {
    top: 0,
    end: 0,
    free: [ptr::null_mut(); CLASSES],
}));

struct Allocator(UnsafeCell<Heap>);

// SAFETY: a guest has one thread.
unsafe impl Sync for Allocator {}

struct Heap {
    /// Nothing from here to `end` was ever given away.
    top: usize,
    end: usize,
    /// The first free block of each class; it holds the address of the next.
    free: [*mut u8; CLASSES],
}

/// The class of a size, and what a block of the class has.
fn class(bytes: usize) -> (usize, usize) {
    let last = bytes.max(BLOCK_BYTES_MIN) - 1;
    let octave = last.ilog2();
    let shift = (octave - 2).max(ALIGN.ilog2());
    let class = 4 * octave as usize + (last >> shift & 3);
    (class, ((last >> shift) + 1) << shift)
}

impl Heap {
    fn take(&mut self, bytes: usize, align: usize) -> *mut u8 {
        let (class, block_bytes) = class(bytes);
        if align > ALIGN {
            return self.push(block_bytes, align);
        }
        let Some(free) = self.free.get_mut(class) else {
            return ptr::null_mut();
        };
        let block = *free;
        if block.is_null() {
            return self.push(block_bytes, ALIGN);
        }
        // SAFETY: what is in the list was given back, and begins with the address of the next.
        *free = unsafe { block.cast::<*mut u8>().read() };
        block
    }

    fn give_back(&mut self, block: *mut u8, layout: Layout) {
        if layout.align() > ALIGN {
            return;
        }
        if let Some(free) = self.free.get_mut(class(layout.size()).0) {
            // SAFETY: the block is nobody's now, aligned, and has room for an address.
            unsafe { block.cast::<*mut u8>().write(*free) };
            *free = block;
        }
    }

    fn push(&mut self, bytes: usize, align: usize) -> *mut u8 {
        if self.end == 0 {
            self.top = (&raw const __heap_base).addr();
            self.end = memory_size(0) * PAGE_BYTES;
        }
        loop {
            let start = self.top.next_multiple_of(align);
            match start.checked_add(bytes) {
                Some(top) if top <= self.end => {
                    self.top = top;
                    return ptr::with_exposed_provenance_mut(start);
                }
                Some(top) if self.grow(top - self.end) => {}
                Some(_) | None => return ptr::null_mut(),
            }
        }
    }

    fn grow(&mut self, bytes: usize) -> bool {
        let pages = bytes.div_ceil(PAGE_BYTES);
        for pages in [pages.max(PAGES_AT_ONCE), pages] {
            let before = memory_grow(0, pages);
            if before != usize::MAX {
                let start = before * PAGE_BYTES;
                // Code in other languages may have asked for memory in between.
                if start != self.end {
                    self.top = start;
                }
                self.end = start + pages * PAGE_BYTES;
                return true;
            }
        }
        false
    }
}

// SAFETY: blocks are as large and as aligned as asked, do not overlap, and stay where they are until given back.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: one thread, and nothing in here allocates.
        unsafe { &mut *self.0.get() }.take(layout.size(), layout.align())
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { &mut *self.0.get() }.give_back(block, layout);
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        let (_, has) = class(layout.size());
        // What is left over of a block that shrinks is not worth a copy.
        if layout.align() <= ALIGN && bytes <= has {
            return block;
        }
        // SAFETY: one thread; the blocks are apart, and both have what is copied.
        unsafe {
            let heap = &mut *self.0.get();
            let moved = heap.take(bytes, layout.align());
            if !moved.is_null() {
                ptr::copy_nonoverlapping(block, moved, layout.size().min(bytes));
                heap.give_back(block, layout);
            }
            moved
        }
    }
}
