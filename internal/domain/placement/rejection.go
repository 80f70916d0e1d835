package placement

import (
	"fmt"
	"slices"
	"strings"
)

// maxListed bounds, in bytes, one list of clusters in a message. The message of a
// condition, of 1024 bytes, may hold two lists and other sentences.
const maxListed = 400

// reason is why a cluster is no candidate, worded for one cluster and for several.
// The zero value means that the cluster may be one.
type reason struct{ one, many string }

// uniform is a reason that reads the same for one cluster and for several.
func uniform(text string) reason { return reason{one: text, many: text} }

var noReason = reason{}

// Rejection names the clusters that one filter rejected for the same reason.
type Rejection struct {
	// Clusters are sorted by name.
	Clusters []string
	reason   reason
}

// rejections groups the clusters that one filter rejected by reason. Groups are
// ordered by their first cluster.
func rejections(byReason map[reason][]string) []Rejection {
	groups := make([]Rejection, 0, len(byReason))
	for reason, names := range byReason {
		slices.Sort(names)
		groups = append(groups, Rejection{Clusters: names, reason: reason})
	}
	slices.SortFunc(groups, func(a, b Rejection) int { return strings.Compare(a.Clusters[0], b.Clusters[0]) })
	return groups
}

// listRejections names each rejected cluster with its reason, and counts those for
// which the message has no room.
func listRejections(groups []Rejection) string {
	var parts []string
	size, left := 0, 0
	for _, group := range groups {
		size += len(group.reason.many) + len("clusters : ; ")
		names, more := bounded(group.Clusters, maxListed-size)
		left += more
		if len(names) == 0 {
			continue
		}
		for _, name := range names {
			size += len(name) + len(", ")
		}
		parts = append(parts, group.reason.of(names))
	}
	text := strings.Join(parts, "; ")
	if left > 0 {
		text += fmt.Sprintf(" and %d more", left)
	}
	return text
}

func (r reason) of(names []string) string {
	if len(names) == 1 {
		return fmt.Sprintf("cluster %s: %s", names[0], r.one)
	}
	return fmt.Sprintf("clusters %s: %s", strings.Join(names, ", "), r.many)
}

// listed joins as many of the texts as a message has room for, and counts the others.
func listed(texts []string) string {
	shown, more := bounded(texts, maxListed)
	text := strings.Join(shown, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// bounded returns the first texts that fit into that many bytes when they are joined,
// and how many are left over.
func bounded(texts []string, bytes int) (shown []string, more int) {
	for i, text := range texts {
		bytes -= len(text) + len(", ")
		if bytes < 0 {
			return texts[:i], len(texts) - i
		}
	}
	return texts, 0
}

// besides lists the clusters that are no candidates, to be put behind what is
// lacking; empty if every cluster is one.
func (t *task) besides() string {
	if len(t.rejected) == 0 {
		return ""
	}
	return "; " + listRejections(t.rejected)
}
