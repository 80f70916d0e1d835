package cluster

import (
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	// MaxResourceNames is how many resources one list may name: as many as each list in
	// the summary of a cluster.
	MaxResourceNames = 256
	// maxResourceName is how long the name of a resource may be, in bytes: a prefix, a
	// slash and a name.
	maxResourceName = 253 + 1 + 63
)

// ErrResourceNames is the error of a list of resources that names too many of them, or
// one by a name that is too long.
var ErrResourceNames = errors.New("a list of resources with more than 256 names, or with a name of more than 317 bytes")

// Lists hold every list of resources of one kind of object once, by its text, as long as
// it is referred to. They tell apart what is held and what the list of objects brings
// that is being read: what was held before must not fail the next list.
type Lists struct {
	known map[string]*Amounts
	held  contents
	// listed is what came since Begin, nil if no list of objects is being read.
	listed *listed
}

// Size is what lists of resources take.
type Size struct {
	// Bytes sums up the texts of the different lists, Names counts the resources in them.
	Bytes, Names int
}

// contents sums up lists, and counts for each resource in how many of them it is.
type contents struct {
	bytes int
	names map[corev1.ResourceName]int
}

type listed struct {
	contents

	texts map[string]bool
}

func newLists() Lists {
	return Lists{known: map[string]*Amounts{}, held: contents{names: map[corev1.ResourceName]int{}}}
}

func (c *contents) add(a *Amounts) {
	c.bytes += len(a.text)
	for i := range a.entries {
		c.names[a.entries[i].name]++
	}
}

func (c *contents) remove(a *Amounts) {
	c.bytes -= len(a.text)
	for i := range a.entries {
		name := a.entries[i].name
		if c.names[name]--; c.names[name] == 0 {
			delete(c.names, name)
		}
	}
}

func (c *contents) size() Size { return Size{Bytes: c.bytes, Names: len(c.names)} }

// Begin is called before a list of objects is read.
func (l *Lists) Begin() {
	l.listed = &listed{contents: contents{names: map[corev1.ResourceName]int{}}, texts: map[string]bool{}}
}

// End is called after a list of objects was read. What came with the list and is not used
// is dropped.
func (l *Lists) End() {
	l.listed = nil
	for _, a := range l.known {
		if a.refs == 0 {
			l.drop(a)
		}
	}
}

// Held is the size of all lists. Listed is that of those that came since Begin.
func (l *Lists) Held() Size { return l.held.size() }

// Listed is told of at Held.
func (l *Lists) Listed() Size {
	if l.listed == nil {
		return Size{}
	}
	return l.listed.size()
}

// Intern brings a list of resources into the form in which it is counted. Equal lists
// become one.
func (l *Lists) Intern(list corev1.ResourceList) (*Amounts, error) {
	if len(list) > MaxResourceNames {
		return nil, ErrResourceNames
	}
	for name := range list {
		if len(name) > maxResourceName {
			return nil, ErrResourceNames
		}
	}
	made := amountsOf(list)
	if known, ok := l.known[made.text]; ok {
		made = known
	}
	l.keep(made)
	if l.listed != nil && !l.listed.texts[made.text] {
		l.listed.texts[made.text] = true
		l.listed.add(made)
	}
	return made, nil
}

// keep takes a list in, unless there is an equal one.
func (l *Lists) keep(a *Amounts) {
	if l.known[a.text] == nil {
		l.known[a.text] = a
		l.held.add(a)
	}
}

func (l *Lists) drop(a *Amounts) {
	delete(l.known, a.text)
	l.held.remove(a)
}

// use refers to a list, which may have been dropped since it was interned.
func (l *Lists) use(a *Amounts) {
	l.keep(a)
	l.known[a.text] = a
	a.refs++
}

func (l *Lists) release(a *Amounts) {
	if a.refs--; a.refs == 0 && l.known[a.text] == a {
		l.drop(a)
	}
}

func amountsOf(list corev1.ResourceList) *Amounts {
	made := &Amounts{entries: make([]amount, 0, len(list))}
	for name, quantity := range list {
		made.entries = append(made.entries, amount{name: name, quantity: quantity.DeepCopy()})
	}
	slices.SortFunc(made.entries, func(a, b amount) int { return strings.Compare(string(a.name), string(b.name)) })
	var text strings.Builder
	for i := range made.entries {
		text.WriteString(string(made.entries[i].name))
		text.WriteByte('=')
		text.WriteString(made.entries[i].quantity.String())
		text.WriteByte(' ')
	}
	made.text = text.String()
	return made
}
