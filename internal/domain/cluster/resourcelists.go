package cluster

import (
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	// MaxResourceNames limits the resources in one list, the same as each list in the summary
	// of a cluster.
	MaxResourceNames = 256
	// maxResourceNameBytes limits the name of a resource, in bytes: a prefix, a slash and a
	// name.
	maxResourceNameBytes = 253 + 1 + 63
)

// ErrResourceNames is the error for a list of resources with too many names, or with a name
// that is too long.
var ErrResourceNames = errors.New("a list of resources with more than 256 names, or with a name of more than 317 bytes")

// Lists is a pool of the resource lists of one kind of object. It holds each different list
// once, by its text, as long as it is referenced. It counts separately what is held and what
// the current list of objects contains: what was held before must not make the next list fail.
type Lists struct {
	byText     map[string]*Amounts
	heldTotals listTotals
	// current counts what was interned since Begin, nil if no list of objects is being read.
	current *listedTotals
}

// Size is the size of a number of resource lists.
type Size struct {
	// Bytes is the sum of the texts of the different lists, Names the number of different
	// resources.
	Bytes, Names int
}

// listTotals are the size of lists, and the number of lists for each resource.
type listTotals struct {
	bytes int
	names map[corev1.ResourceName]int
}

type listedTotals struct {
	listTotals

	texts map[string]bool
}

func newLists() Lists {
	return Lists{byText: map[string]*Amounts{}, heldTotals: listTotals{names: map[corev1.ResourceName]int{}}}
}

func (c *listTotals) add(a *Amounts) {
	c.bytes += len(a.text)
	for i := range a.entries {
		c.names[a.entries[i].name]++
	}
}

func (c *listTotals) remove(a *Amounts) {
	c.bytes -= len(a.text)
	for i := range a.entries {
		name := a.entries[i].name
		if c.names[name]--; c.names[name] == 0 {
			delete(c.names, name)
		}
	}
}

func (c *listTotals) size() Size { return Size{Bytes: c.bytes, Names: len(c.names)} }

// Begin must be called before a list of objects is read.
func (l *Lists) Begin() {
	l.current = &listedTotals{listTotals: listTotals{names: map[corev1.ResourceName]int{}}, texts: map[string]bool{}}
}

// End must be called after a list of objects was read. It drops lists without a reference.
func (l *Lists) End() {
	l.current = nil
	for _, a := range l.byText {
		if a.refs == 0 {
			l.drop(a)
		}
	}
}

// Held returns the size of all lists in the pool.
func (l *Lists) Held() Size { return l.heldTotals.size() }

// Listed returns the size of the lists that were interned since Begin.
func (l *Lists) Listed() Size {
	if l.current == nil {
		return Size{}
	}
	return l.current.size()
}

// Intern returns the entry of the pool for a list of resources. Equal lists share one entry.
func (l *Lists) Intern(list corev1.ResourceList) (*Amounts, error) {
	if len(list) > MaxResourceNames {
		return nil, ErrResourceNames
	}
	for name := range list {
		if len(name) > maxResourceNameBytes {
			return nil, ErrResourceNames
		}
	}
	made := newAmounts(list)
	if known, ok := l.byText[made.text]; ok {
		made = known
	}
	l.insert(made)
	if l.current != nil && !l.current.texts[made.text] {
		l.current.texts[made.text] = true
		l.current.add(made)
	}
	return made, nil
}

// insert adds a list, unless the pool has an equal one.
func (l *Lists) insert(a *Amounts) {
	if l.byText[a.text] == nil {
		l.byText[a.text] = a
		l.heldTotals.add(a)
	}
}

func (l *Lists) drop(a *Amounts) {
	delete(l.byText, a.text)
	l.heldTotals.remove(a)
}

// acquire adds a reference to a list, which may have been dropped since it was interned.
func (l *Lists) acquire(a *Amounts) {
	l.insert(a)
	l.byText[a.text] = a
	a.refs++
}

func (l *Lists) release(a *Amounts) {
	if a.refs--; a.refs == 0 && l.byText[a.text] == a {
		l.drop(a)
	}
}

func newAmounts(list corev1.ResourceList) *Amounts {
	made := &Amounts{entries: make([]resourceAmount, 0, len(list))}
	for name, quantity := range list {
		made.entries = append(made.entries, resourceAmount{name: name, quantity: quantity.DeepCopy()})
	}
	slices.SortFunc(made.entries, func(a, b resourceAmount) int { return strings.Compare(string(a.name), string(b.name)) })
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
