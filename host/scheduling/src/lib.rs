//! The pure scheduling core: requirements, resources, instance types, topology, the solver and the ranking hook.
