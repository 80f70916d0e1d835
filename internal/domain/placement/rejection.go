package placement

import (
	"fmt"
	"slices"
	"strings"
)

// maxListBytes is the maximum length, in bytes, of one list of clusters in a message. The
// message of a condition has at most 1024 bytes and may hold two lists and other sentences.
const maxListBytes = 400

// reason is the reason why a cluster is rejected, as text for one and for several clusters. The
// zero value means that the cluster is not rejected.
type reason struct{ singular, plural string }

// newReason returns a reason with the same text for one cluster and for several.
func newReason(text string) reason { return reason{singular: text, plural: text} }

var noReason = reason{}

// Rejection lists the clusters that one filter rejected for the same reason.
type Rejection struct {
	// Clusters are sorted by name.
	Clusters []string
	reason   reason
}

// rejectedClusters are the names of the clusters that one filter rejected, by the reason. The zero
// value is empty.
type rejectedClusters map[reason][]string

func (r *rejectedClusters) add(why reason, cluster string) {
	if *r == nil {
		*r = rejectedClusters{}
	}
	(*r)[why] = append((*r)[why], cluster)
}

// groupRejections returns a Rejection for each reason. The result is sorted by the first cluster of
// each Rejection.
func groupRejections(byReason rejectedClusters) []Rejection {
	if len(byReason) == 0 {
		return nil
	}
	groups := make([]Rejection, 0, len(byReason))
	for reason, names := range byReason {
		slices.Sort(names)
		groups = append(groups, Rejection{Clusters: names, reason: reason})
	}
	slices.SortFunc(groups, func(a, b Rejection) int { return strings.Compare(a.Clusters[0], b.Clusters[0]) })
	return groups
}

// listRejections returns a text with each rejected cluster and its reason. For the clusters that do
// not fit into the message, the text contains only their number.
func listRejections(groups []Rejection) string {
	var parts []string
	size, omitted := 0, 0
	for _, group := range groups {
		size += len(group.reason.plural) + len("clusters : ; ")
		names, notShown := firstThatFit(group.Clusters, maxListBytes-size)
		omitted += notShown
		if len(names) == 0 {
			continue
		}
		for _, name := range names {
			size += len(name) + len(", ")
		}
		parts = append(parts, group.reason.format(names))
	}
	text := strings.Join(parts, "; ")
	if omitted > 0 {
		text += fmt.Sprintf(" and %d more", omitted)
	}
	return text
}

func (r reason) format(names []string) string {
	if len(names) == 1 {
		return fmt.Sprintf("cluster %s: %s", names[0], r.singular)
	}
	return fmt.Sprintf("clusters %s: %s", strings.Join(names, ", "), r.plural)
}

// joinBounded joins as many of the texts as fit into a message, and adds the number of the others.
func joinBounded(texts []string) string {
	shown, more := firstThatFit(texts, maxListBytes)
	text := strings.Join(shown, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// firstThatFit returns as many of the first texts as fit into the given number of bytes when they
// are joined, and the number of the remaining texts.
func firstThatFit(texts []string, bytes int) (shown []string, more int) {
	for i, text := range texts {
		bytes -= len(text) + len(", ")
		if bytes < 0 {
			return texts[:i], len(texts) - i
		}
	}
	return texts, 0
}

// rejectionSuffix returns the end of an error message, which lists the rejected clusters. It
// returns an empty string if no cluster was rejected.
func (t *task) rejectionSuffix() string {
	if len(t.rejections) == 0 {
		return ""
	}
	return "; " + listRejections(t.rejections)
}
