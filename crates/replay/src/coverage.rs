//! Which branches of a controller a recording reached.

use core::fmt;

/// The most branches in a table.
const MOST: usize = 96;

/// A branch of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Its name in tables.
    pub name: &'static str,
    /// When a call reaches it.
    pub summary: &'static str,
}

/// How many calls reached each branch.
#[derive(Clone, Copy)]
pub struct Coverage {
    table: &'static [Branch],
    counts: [u64; MOST],
}

impl Coverage {
    pub(super) const fn of(table: &'static [Branch]) -> Coverage {
        assert!(table.len() <= MOST);
        Coverage { table, counts: [0; MOST] }
    }

    /// The branches, in the order of [`Coverage::counts`].
    pub const fn branches(&self) -> &'static [Branch] {
        self.table
    }

    /// Calls that reached each branch.
    pub fn counts(&self) -> &[u64] {
        &self.counts[..self.table.len()]
    }

    /// Calls that reached the branch of this name, if there is one.
    pub fn count(&self, name: &str) -> Option<u64> {
        self.iter().find(|(branch, _)| branch.name == name).map(|(_, count)| count)
    }

    /// Each branch with its count.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Branch, u64)> + '_ {
        self.table.iter().zip(self.counts)
    }

    /// Adds the counts of another flow of the same control.
    pub fn add(&mut self, other: &Coverage) {
        debug_assert!(core::ptr::eq(self.table, other.table), "coverage of different controls");
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count = count.saturating_add(more);
        }
    }

    /// Counts the call for `branch`, if it `reached` it.
    #[inline]
    pub(super) fn note(&mut self, branch: usize, reached: bool) {
        self.counts[branch] += reached as u64;
    }
}

impl fmt::Debug for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(branch, count)| (branch.name, count))).finish()
    }
}

/// An enumeration of branches with a table of their names and summaries, in one order.
macro_rules! branches {
    ($enumeration:ident { $($variant:ident $name:literal $summary:literal;)+ }) => {
        #[derive(Clone, Copy, Debug)]
        enum $enumeration { $($variant,)+ }

        impl $enumeration {
            const TABLE: &'static [$crate::Branch] =
                &[$($crate::Branch { name: $name, summary: $summary },)+];
        }
    };
}
pub(super) use branches;
