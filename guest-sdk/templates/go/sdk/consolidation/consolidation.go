// Package consolidation is the interface of consolidation policies, wit/consolidation.wit.
package consolidation

import (
	"unsafe"

	"mortise.dev/policy"
)

// Kinds of moves; refuse what you do not know.
const (
	Empty = iota
	Delete
	Replace
	Drift
	StaticDrift
	Expire
)

// Decision about a move.
type Decision uint8

// What a move may come to.
const (
	Approve Decision = iota
	Reject
	Hold
)

// Nodes are the candidates, a column each.
type Nodes struct {
	Symbols                                      policy.List[policy.Text]
	Name, NodePool, InstanceType, Zone           policy.List[uint32]
	CapacityType                                 policy.List[uint8]
	Price, EffectivePrice                        policy.List[float64]
	ConsolidationPolicy, Age, TimeToExpiry       policy.List[uint32]
	LastPodEvent, DriftReason, Pods, BlockedPods policy.List[uint32]
	DisruptionCost                               policy.List[float64]
	CPUMilli, CPURequestedMilli                  policy.List[uint32]
	MemoryMiB, MemoryRequestedMiB                policy.List[uint32]
	GPUs, GPUsRequested                          policy.List[uint32]
	// Labels are without entries unless Needs name node-labels.
	Labels policy.List[policy.List[policy.Pair]]
	Extra  policy.List[policy.Column]
}

// NodePool of the candidates, with all its nodes.
type NodePool struct {
	Name                                  uint32
	Labels                                policy.List[policy.Pair]
	Nodes                                 uint32
	Price, EffectivePrice, DisruptionCost float64
	RecentHour, RecentDay                 uint32
	Extra                                 policy.List[policy.Field]
}

// Move is what consolidation would do.
type Move struct {
	Kind                                                   uint8
	Remove                                                 policy.List[uint32]
	CostBefore, CostAfter, EffectiveBefore, EffectiveAfter float64
	PodsMoved, SingletonsMoved                             uint32
	MaxPriority                                            int32
	NewNodes, ReplacementType, ReplacementZone             uint32
	ReplacementCapacityType                                uint8
	Labels                                                 policy.List[policy.Pair]
	Extra                                                  policy.List[policy.Field]
}

// Round is what is asked.
type Round struct {
	Context   policy.Context
	Nodes     Nodes
	NodePools policy.List[NodePool]
	Workloads policy.Workloads
	// Moves are there when they are judged, and not when nodes are put in order.
	Moves policy.List[Move]
}

// Verdict on a move.
type Verdict struct {
	Decision          Decision
	Score             float64
	Reason            string
	RetryAfterSeconds uint32
}

// Serve sets what answers; call it in an init function. The order has a key for each node, lower first; there is one
// verdict for each move, in their order.
func Serve(order func(*Round) []float64, judge func(*Round) []Verdict) {
	servedOrder, servedJudge = order, judge
}

var (
	servedOrder func(*Round) []float64
	servedJudge func(*Round) []Verdict
)

// An order is asked without the moves, so that they must not be looked at.
type orderRound struct {
	context   policy.Context
	nodes     Nodes
	nodePools policy.List[NodePool]
	workloads policy.Workloads
}

type wireVerdict struct {
	decision   Decision
	score      float64
	reason     policy.Text
	retryAfter uint32
	extra      policy.List[policy.Field]
}

var orderResult struct {
	isError bool
	keys    policy.List[float64]
}

var judgeResult struct {
	isError  bool
	verdicts policy.List[wireVerdict]
	memory   policy.Memory
	extra    policy.List[policy.Field]
}

//go:wasmexport mortise:policy/consolidation@0.2.0#order
func order(asked unsafe.Pointer) uint32 {
	it := (*orderRound)(asked)
	round := Round{Context: it.context, Nodes: it.nodes, NodePools: it.nodePools, Workloads: it.workloads}
	orderResult.keys = policy.ListOf(servedOrder(&round))
	return policy.Address(unsafe.Pointer(&orderResult))
}

//go:wasmexport mortise:policy/consolidation@0.2.0#judge
func judge(asked unsafe.Pointer) uint32 {
	verdicts := servedJudge((*Round)(asked))
	told := make([]wireVerdict, len(verdicts))
	for i, it := range verdicts {
		told[i] = wireVerdict{
			decision:   it.Decision,
			score:      it.Score,
			reason:     policy.TextOf(it.Reason),
			retryAfter: it.RetryAfterSeconds,
		}
	}
	judgeResult.verdicts = policy.ListOf(told)
	return policy.Address(unsafe.Pointer(&judgeResult))
}
