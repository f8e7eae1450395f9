//! The AWS provider: EC2NodeClass resolution, offerings, pricing and launches through one seam.

pub mod pricing;
pub mod sdk;
pub mod seam;
