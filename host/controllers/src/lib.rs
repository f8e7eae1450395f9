//! Watches become state events; every controller observes, decides and applies.
