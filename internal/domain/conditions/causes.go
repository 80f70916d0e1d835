package conditions

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	// maxCauseBytes is the maximum length of each cause, in bytes, if the clusters have different
	// causes.
	maxCauseBytes = 200
	// maxNamedClusters is the maximum number of cluster names that are listed for each cause.
	maxNamedClusters = 10
	// separatorMargin is the number of bytes that are reserved for the separators between a message's
	// parts.
	separatorMargin = 50
)

// EnumerateCauses appends the clusters' causes to text, in the form "m1, m2: cause; m3: other cause".
// It appends as many causes as fit into a message, followed by the number of omitted clusters. A cause
// that all clusters share may use the whole message.
//
// Clusters are sorted by name, and clusters with the same cause are listed together. The result has at
// most MaxMessageBytes bytes. Equal arguments result in equal text.
func EnumerateCauses(text string, byCluster map[string]string) string {
	groups := groupByCause(byCluster, causeLimit(text, byCluster))
	limit := MaxMessageBytes - len("; and 1000000 more clusters")
	var parts []string
	used, omitted := len(text), 0
	for i, each := range groups {
		part := each.String()
		if used+len(part)+len("; ") > limit {
			for _, rest := range groups[i:] {
				omitted += len(rest.clusters)
			}
			break
		}
		parts, used = append(parts, part), used+len(part)+len("; ")
	}
	if omitted > 0 {
		parts = append(parts, fmt.Sprintf("and %d more clusters", omitted))
	}
	return text + strings.Join(parts, "; ")
}

// causeGroup contains a cause and the clusters that share it.
type causeGroup struct {
	clusters []string
	cause    string
}

func (c causeGroup) String() string {
	names := slices.Clone(c.clusters)
	if more := len(names) - maxNamedClusters; more > 0 {
		names = append(names[:maxNamedClusters], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ") + ": " + c.cause
}

// groupByCause groups clusters by their cause. Each cause is truncated to the given number of bytes.
// The groups are sorted by their first cluster.
func groupByCause(byCluster map[string]string, bytes int) []causeGroup {
	var list []causeGroup
	at := map[string]int{}
	for _, cluster := range slices.Sorted(maps.Keys(byCluster)) {
		cause := Truncate(byCluster[cluster], bytes)
		i, known := at[cause]
		if !known {
			i = len(list)
			at[cause] = i
			list = append(list, causeGroup{cause: cause})
		}
		list[i].clusters = append(list[i].clusters, cluster)
	}
	return list
}

// causeLimit returns the maximum length of each cause, in bytes.
func causeLimit(text string, byCluster map[string]string) int {
	if sets.New(slices.Collect(maps.Values(byCluster))...).Len() > 1 {
		return maxCauseBytes
	}
	shared := causeGroup{clusters: slices.Sorted(maps.Keys(byCluster))}
	return max(maxCauseBytes, MaxMessageBytes-len(shared.String())-len(text)-separatorMargin)
}
