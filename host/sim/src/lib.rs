//! The simulated world: API server, workload controllers, scheduler, kubelets and EC2, in virtual or real time.
