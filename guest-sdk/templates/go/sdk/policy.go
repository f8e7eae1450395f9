// Package policy is the interface of wit/ as the canonical ABI lays it out: what all kinds of policies share.
//
// Addresses are 32 bits wide in a component, whatever the compiler's pointers are, so a list is two numbers and looked
// at by Slice. What was handed over stays until the end of the call: every round runs in a fresh instance.
package policy

import "unsafe"

// SDK is what a component says it was built with.
const SDK = "go template 0.2.0"

// None is the symbol of no word; also: never.
const None = ^uint32(0)

// List is a list as the host lays it out.
type List[T any] struct {
	at, length uint32
}

// Len is the number of items.
func (list List[T]) Len() int { return int(list.length) }

// Slice looks at the items where they are.
func (list List[T]) Slice() []T {
	if list.length == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Add(unsafe.Pointer(nil), list.at)), list.length)
}

// ListOf copies items to where they stay until the end of the call.
func ListOf[T any](items []T) List[T] {
	if len(items) == 0 {
		return List[T]{}
	}
	var item T
	start := allocate(uint32(len(items)) * uint32(unsafe.Sizeof(item)))
	copy(unsafe.Slice((*T)(start), len(items)), items)
	return List[T]{Address(start), uint32(len(items))}
}

// Text is a string as the host lays it out.
type Text struct {
	bytes List[byte]
}

func (text Text) String() string { return string(text.bytes.Slice()) }

// TextOf copies a string to where it stays until the end of the call.
func TextOf(text string) Text { return Text{ListOf([]byte(text))} }

// TextAt is a text that came as two arguments.
func TextAt(at, length uint32) Text { return Text{List[byte]{at, length}} }

// ListAt is a list that came as two arguments.
func ListAt[T any](at, length uint32) List[T] { return List[T]{at, length} }

// Address is where something lies in the memory of the component.
func Address(at unsafe.Pointer) uint32 { return uint32(uintptr(at)) }

// Pair of symbols, a label.
type Pair struct{ Key, Value uint32 }

// Field is what this version of the interface has no name for: leave it out of answers, and do not look at it.
type Field struct {
	name  Text
	kind  uint8
	value uint64
}

// Column is a column without a name of its own.
type Column struct {
	Name   Text
	kind   uint8
	values List[byte]
}

// Civil is the time in a zone; a week begins with Monday, 0.
type Civil struct {
	Zone                              Text
	Year                              int32
	Month, Day, Weekday, Hour, Minute uint8
	UTCOffsetMinutes                  int32
	Calendars                         List[Text]
}

// Context is what every round has.
type Context struct {
	Now        uint64
	Civil      List[Civil]
	Cluster    Text
	DecisionID Text
	Seed       uint64
	Memory     List[byte]
	Extra      List[Field]
}

// Memory is what the next call is to be given; without IsSome it is left as it is.
type Memory struct {
	IsSome bool
	Bytes  List[byte]
}

// Workloads are pods by owner: without rows unless Needs of the descriptor name workloads.
type Workloads struct {
	Of, Namespace, OwnerKind, OwnerName, PriorityClass      List[uint32]
	Priority                                                List[int32]
	Labels                                                  List[List[Pair]]
	Pods, DoNotDisrupt, CPUMilli, MemoryMiB, GPUs, Replicas List[uint32]
	DisruptionsAllowed, OldestWait                          List[uint32]
	Extra                                                   List[Column]
}

// SymbolOf is the number of a word, None when the round does not have it.
func SymbolOf(symbols List[Text], word string) uint32 {
	for symbol, it := range symbols.Slice() {
		if it.String() == word {
			return uint32(symbol)
		}
	}
	return None
}

// Memory that was handed out; the collector must not take it back before the host has read it.
var kept [][]uint64

func allocate(bytes uint32) unsafe.Pointer {
	words := make([]uint64, bytes/8+1)
	kept = append(kept, words)
	return unsafe.Pointer(&words[0])
}

// By which the host hands over arguments.
//
//go:wasmexport cabi_realloc
func realloc(old, oldBytes, _, bytes uint32) uint32 {
	start := allocate(bytes)
	copy(unsafe.Slice((*byte)(start), bytes), List[byte]{old, oldBytes}.Slice())
	return Address(start)
}
