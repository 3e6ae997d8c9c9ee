//! A queue with a power of two of places: one operation less than the standard library's, in the one loop where that
//! matters.

/// A first-in, first-out queue.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    /// A power of two of places; the used ones follow each other from `head` on.
    places: Vec<Option<T>>,
    /// The place of the first item, modulo the number of places.
    head: usize,
    /// The place of the next item.
    tail: usize,
}

impl<T> Ring<T> {
    pub(crate) fn new() -> Ring<T> {
        Ring { places: vec![None, None], head: 0, tail: 0 }
    }

    /// How many it holds.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.tail.wrapping_sub(self.head)
    }

    #[inline]
    fn place(&self, position: usize) -> usize {
        position & (self.places.len() - 1)
    }

    /// Makes room for `more`.
    #[inline]
    pub(crate) fn reserve(&mut self, more: usize) {
        if self.len() + more > self.places.len() {
            self.grow(more);
        }
    }

    #[cold]
    fn grow(&mut self, more: usize) {
        let len = self.len();
        let size = (len + more).next_power_of_two();
        let mut places = Vec::with_capacity(size);
        places.extend((0..len).map(|index| {
            let place = self.place(self.head.wrapping_add(index));
            self.places[place].take()
        }));
        places.resize_with(size, || None);
        *self = Ring { places, head: 0, tail: len };
    }

    /// Appends.
    #[inline]
    pub(crate) fn push(&mut self, value: T) {
        self.reserve(1);
        let place = self.place(self.tail);
        self.places[place] = Some(value);
        self.tail = self.tail.wrapping_add(1);
    }

    /// The first.
    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        self.places[self.place(self.head)].as_ref()
    }

    /// The item after `places` others.
    #[inline]
    pub(crate) fn get(&self, places: usize) -> Option<&T> {
        if places < self.len() { self.place_ahead(places).as_ref() } else { None }
    }

    /// The place `places` behind that of the first item, around.
    #[inline]
    pub(crate) fn place_ahead(&self, places: usize) -> &Option<T> {
        &self.places[self.place(self.head.wrapping_add(places))]
    }

    /// Takes out the first.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let place = self.place(self.head);
        let first = self.places[place].take();
        self.head = self.head.wrapping_add(first.is_some() as usize);
        first
    }

    /// Drops the first, which it has.
    #[inline]
    pub(crate) fn drop_front(&mut self) {
        let place = self.place(self.head);
        self.places[place] = None;
        self.head = self.head.wrapping_add(1);
    }

    /// Lets `change` change each, in order.
    pub(crate) fn for_each(&mut self, mut change: impl FnMut(&mut T)) {
        for index in 0..self.len() {
            let place = self.place(self.head.wrapping_add(index));
            self.places[place].iter_mut().for_each(&mut change);
        }
    }

    /// All of them, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len()).filter_map(|index| self.places[self.place(self.head.wrapping_add(index))].as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn it_is_a_queue(steps in prop::collection::vec(prop::option::of(0u32..1000), 0..300)) {
            let (mut ring, mut queue) = (Ring::new(), VecDeque::new());
            for step in steps {
                match step {
                    Some(value) => {
                        ring.push(value);
                        queue.push_back(value);
                    }
                    None => prop_assert_eq!(ring.pop(), queue.pop_front()),
                }
                prop_assert_eq!(ring.front(), queue.front());
                ring.for_each(|value| *value += 1);
                queue.iter_mut().for_each(|value| *value += 1);
                prop_assert!((0..6).all(|index| ring.get(index) == queue.get(index)));
                prop_assert!(ring.iter().eq(queue.iter()));
                prop_assert_eq!(ring.len(), queue.len());
            }
        }
    }
}
