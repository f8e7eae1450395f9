package policy

import "unsafe"

// Descriptor is who a policy says it is.
type Descriptor struct {
	Name, Version, Summary string
	// ConfigSchema is a JSON schema of the settings, if there is one.
	ConfigSchema string
	// Needs are those of workloads, node-labels, free-addresses, interruption-rate, memory and expire that it uses.
	Needs []string
	// Configure reads the settings, "" when there are none, before each round. Without it a policy takes none.
	Configure func(config string) []Issue
}

// Issue is what is wrong with a setting: a JSON pointer and a sentence.
type Issue struct{ Path, Message string }

// Describe says who the policy is; call it in an init function.
func Describe(descriptor Descriptor) { described = descriptor }

var described Descriptor

type wireDescriptor struct {
	name, version, summary, configSchema Text
	deterministic                        bool
	needs                                List[Text]
	sdk                                  Text
	extra                                List[Field]
}

type wireIssue struct{ path, message Text }

type wireConfigured struct {
	isError bool
	issues  List[wireIssue]
}

var (
	descriptorResult wireDescriptor
	configuredResult wireConfigured
)

//go:wasmexport mortise:policy/lifecycle@0.2.0#describe
func describe() uint32 {
	needs := make([]Text, len(described.Needs))
	for i, need := range described.Needs {
		needs[i] = TextOf(need)
	}
	descriptorResult = wireDescriptor{
		name:          TextOf(described.Name),
		version:       TextOf(described.Version),
		summary:       TextOf(described.Summary),
		configSchema:  TextOf(described.ConfigSchema),
		deterministic: true,
		needs:         ListOf(needs),
		sdk:           TextOf(SDK),
	}
	return Address(unsafe.Pointer(&descriptorResult))
}

//go:wasmexport mortise:policy/lifecycle@0.2.0#validate
func validate(at, length uint32) uint32 { return configured(TextAt(at, length).String()) }

//go:wasmexport mortise:policy/lifecycle@0.2.0#configure
func configure(at, length uint32) uint32 { return configured(TextAt(at, length).String()) }

func configured(config string) uint32 {
	var issues []Issue
	switch {
	case described.Configure != nil:
		issues = described.Configure(config)
	case config != "":
		issues = []Issue{{Message: "takes no settings"}}
	}
	told := make([]wireIssue, len(issues))
	for i, issue := range issues {
		told[i] = wireIssue{TextOf(issue.Path), TextOf(issue.Message)}
	}
	configuredResult = wireConfigured{isError: len(told) > 0, issues: ListOf(told)}
	return Address(unsafe.Pointer(&configuredResult))
}
