// Package rank is the interface of ranking policies, wit/rank.wit.
package rank

import (
	"unsafe"

	"mortise.dev/policy"
)

// Stages in which a claim is ranked.
const (
	Packing = iota
	Launch
	Appraisal
)

// Offerings are what can be bought, a column each.
type Offerings struct {
	Symbols                                           policy.List[policy.Text]
	InstanceType, Family, Generation, CPUManufacturer policy.List[uint32]
	Zone, Arch                                        policy.List[uint32]
	CapacityType                                      policy.List[uint8]
	Price, OnDemandPrice                              policy.List[float64]
	CPUMilli, MemoryMiB, GPUs, MaxPods                policy.List[uint32]
	ReservationSlots, IceCount, IceAge                policy.List[uint32]
	InterruptionRate, Prior                           policy.List[float64]
	Extra                                             policy.List[policy.Column]
}

// Usage is the nodes that there are.
type Usage struct {
	NodePool, InstanceType, Family, Zone policy.List[uint32]
	CapacityType                         policy.List[uint8]
	Nodes, Launching                     policy.List[uint32]
	Price                                policy.List[float64]
	Extra                                policy.List[policy.Column]
}

// Requirement of a claim.
type Requirement struct {
	Key       uint32
	Operator  uint8
	Values    policy.List[uint32]
	MinValues uint32
	Extra     policy.List[policy.Field]
}

// Pods of a claim in a few numbers.
type Pods struct {
	Count, CPUMilli, MemoryMiB, GPUs     uint32
	MaxPriority                          int32
	DoNotDisrupt, Replicated, OldestWait uint32
	Extra                                policy.List[policy.Field]
}

// Addresses that are free in a zone.
type Addresses struct{ Zone, Free uint32 }

// Claim is what is to be bought.
type Claim struct {
	NodePool, Weight uint32
	Stage            uint8
	// Candidates are rows of the offerings; none means all.
	Candidates             policy.List[uint32]
	Requirements           policy.List[Requirement]
	Pods                   Pods
	Labels, NodePoolLabels policy.List[policy.Pair]
	FreeAddresses          policy.List[Addresses]
	Extra                  policy.List[policy.Field]
}

// Round is what is asked.
type Round struct {
	Context   policy.Context
	Offerings Offerings
	Usage     Usage
	Workloads policy.Workloads
	Claims    policy.List[Claim]
}

// Ranking is the answer for a claim: a cost for each of its candidates, and which of them must not be bought, by their
// position, each with the number of its reason.
type Ranking struct {
	Scores                   []float64
	Excluded, ExcludedReason []uint32
	Reasons                  []string
	Note                     string
}

// Ranked gives each claim its part of costs that hang on the row alone.
func (round *Round) Ranked(costs []float64) []Ranking {
	claims := round.Claims.Slice()
	rankings := make([]Ranking, len(claims))
	for i := range claims {
		candidates := claims[i].Candidates.Slice()
		if len(candidates) == 0 {
			rankings[i].Scores = costs
			continue
		}
		scores := make([]float64, len(candidates))
		for at, row := range candidates {
			scores[at] = costs[row]
		}
		rankings[i].Scores = scores
	}
	return rankings
}

// Serve sets what answers; call it in an init function. There is one ranking for each claim, in their order.
func Serve(answer func(*Round) []Ranking) { served = answer }

var served func(*Round) []Ranking

type wireRanking struct {
	scores                   policy.List[float64]
	excluded, excludedReason policy.List[uint32]
	reasons                  policy.List[policy.Text]
	hasNote                  bool
	note                     policy.Text
	extra                    policy.List[policy.Field]
}

var result struct {
	isError  bool
	rankings policy.List[wireRanking]
	memory   policy.Memory
	extra    policy.List[policy.Field]
}

//go:wasmexport mortise:policy/rank@0.2.0#rank
func rank(asked unsafe.Pointer) uint32 {
	rankings := served((*Round)(asked))
	told := make([]wireRanking, len(rankings))
	for i, it := range rankings {
		reasons := make([]policy.Text, len(it.Reasons))
		for at, reason := range it.Reasons {
			reasons[at] = policy.TextOf(reason)
		}
		told[i] = wireRanking{
			scores:         policy.ListOf(it.Scores),
			excluded:       policy.ListOf(it.Excluded),
			excludedReason: policy.ListOf(it.ExcludedReason),
			reasons:        policy.ListOf(reasons),
			hasNote:        it.Note != "",
			note:           policy.TextOf(it.Note),
		}
	}
	result.rankings = policy.ListOf(told)
	return policy.Address(unsafe.Pointer(&result))
}
