package placement

import (
	"fmt"
	"slices"
	"strings"
)

// maxListBytes is the maximum length, in bytes, of a list of clusters in a message. A condition's
// message has at most 1024 bytes, and may contain two lists and other sentences.
const maxListBytes = 400

// reason is the text that explains why a cluster, or several clusters, are rejected. The zero value
// means that the cluster is not rejected.
type reason struct{ singular, plural string }

// newReason returns a reason with the same text for one cluster and for several.
func newReason(text string) reason { return reason{singular: text, plural: text} }

var noReason = reason{}

// Rejection lists the clusters that a filter rejected for the same reason.
type Rejection struct {
	// Clusters are sorted by name.
	Clusters []string
	reason   reason
}

// rejectedClusters holds the names of the clusters that a filter rejected, by reason.
type rejectedClusters map[reason][]string

func (r *rejectedClusters) add(why reason, cluster string) {
	if *r == nil {
		*r = rejectedClusters{}
	}
	(*r)[why] = append((*r)[why], cluster)
}

// groupRejections returns a Rejection for each reason, sorted by the name of its first cluster.
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

// listRejections describes the rejected clusters and their reasons. Clusters that do not fit into the
// message are only counted.
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

// joinBounded joins as many texts as fit into a message, and appends the number of the others.
func joinBounded(texts []string) string {
	shown, more := firstThatFit(texts, maxListBytes)
	text := strings.Join(shown, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// firstThatFit returns the first texts that, when joined, fit into the given number of bytes, and the
// number of the remaining texts.
func firstThatFit(texts []string, bytes int) (shown []string, more int) {
	for i, text := range texts {
		bytes -= len(text) + len(", ")
		if bytes < 0 {
			return texts[:i], len(texts) - i
		}
	}
	return texts, 0
}

// rejectionSuffix returns the rejected clusters as the end of an error message, or an empty string if
// no cluster was rejected.
func (t *task) rejectionSuffix() string {
	if len(t.rejections) == 0 {
		return ""
	}
	return "; " + listRejections(t.rejections)
}
