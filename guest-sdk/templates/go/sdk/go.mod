module mortise.dev/policy

go 1.24
