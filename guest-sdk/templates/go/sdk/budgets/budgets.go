// Package budgets is the interface of budget policies, wit/budgets.wit.
package budgets

import (
	"unsafe"

	"mortise.dev/policy"
)

// Reason of a disruption.
type Reason uint8

// Reasons: those below Judged are asked about, the fourth may be spoken of too.
const (
	Underutilized Reason = iota
	Empty
	Drifted
	Judged
	Unhealthy = Judged
)

// Declared is a budget of the NodePool.
type Declared struct {
	Nodes      policy.Text
	Resolved   uint32
	Active     bool
	NextChange uint32
	reasons    uint8
	Extra      policy.List[policy.Field]
}

// IsFor says whether the budget bounds the reason.
func (declared *Declared) IsFor(reason Reason) bool { return declared.reasons>>reason&1 == 1 }

// Activity of a reason.
type Activity struct {
	Reason                                       Reason
	Disrupting, RecentHour, RecentDay, FailedDay uint32
	Extra                                        policy.List[policy.Field]
}

// Label of a NodePool.
type Label struct{ Key, Value policy.Text }

// Pool is a NodePool with its nodes.
type Pool struct {
	Name                               policy.Text
	Labels                             policy.List[Label]
	Total, NotReady, Deleting, Drifted uint32
	DriftTarget                        policy.Text
	Renewed, TargetAge                 uint32
	Price                              float64
	// Activity has an entry for each reason.
	Activity    policy.List[Activity]
	PendingPods uint32
	Declared    policy.List[Declared]
	Extra       policy.List[policy.Field]
}

// DeclaredFor is how many nodes the declared budgets allow for the reason.
func (pool *Pool) DeclaredFor(reason Reason) uint32 {
	least := pool.Total
	declared := pool.Declared.Slice()
	for i := range declared {
		if it := &declared[i]; it.Active && it.IsFor(reason) {
			least = min(least, it.Resolved)
		}
	}
	return least
}

// Round is what is asked.
type Round struct {
	Context policy.Context
	Pools   policy.List[Pool]
}

// Allowance is how many nodes of a pool, by its position, may be disrupted for a reason at the same time.
type Allowance struct {
	Pool    uint32
	Reason  Reason
	Allowed uint32
	Why     string
}

// Serve sets what answers; call it in an init function.
func Serve(answer func(*Round) []Allowance) { served = answer }

var served func(*Round) []Allowance

type wireAllowance struct {
	pool    uint32
	reason  Reason
	allowed uint32
	why     policy.Text
	extra   policy.List[policy.Field]
}

var result struct {
	isError  bool
	items    policy.List[wireAllowance]
	validFor uint32
	memory   policy.Memory
	extra    policy.List[policy.Field]
}

// The arguments are few enough that each comes by itself: the context, then the pools.
//
//go:wasmexport mortise:policy/budgets@0.2.0#allow
func allow(
	now uint64, civil, civilLength, cluster, clusterLength, decisionID, decisionIDLength uint32, seed uint64,
	memory, memoryLength, extra, extraLength, pools, count uint32,
) uint32 {
	round := Round{
		Context: policy.Context{
			Now:        now,
			Civil:      policy.ListAt[policy.Civil](civil, civilLength),
			Cluster:    policy.TextAt(cluster, clusterLength),
			DecisionID: policy.TextAt(decisionID, decisionIDLength),
			Seed:       seed,
			Memory:     policy.ListAt[byte](memory, memoryLength),
			Extra:      policy.ListAt[policy.Field](extra, extraLength),
		},
		Pools: policy.ListAt[Pool](pools, count),
	}
	allowances := served(&round)
	told := make([]wireAllowance, len(allowances))
	for i, it := range allowances {
		told[i] = wireAllowance{pool: it.Pool, reason: it.Reason, allowed: it.Allowed, why: policy.TextOf(it.Why)}
	}
	result.items = policy.ListOf(told)
	return policy.Address(unsafe.Pointer(&result))
}
