//! Candidates, disruption methods, budgets, and the verdict and budget hooks.
