//! The one cluster model, its snapshots, and the record types of the decision ledger.
