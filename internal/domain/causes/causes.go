// Package causes answers: how does one message say what is the matter in many
// clusters?
//
// Invariants: clusters are named in the order of their names, those with the same
// cause together; the result has at most conditions.MaxMessageBytes bytes, and the
// same input gives the same text.
package causes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"karmada.io/karmada/internal/domain/conditions"
)

const (
	// causeBytes bounds one cause when clusters have several.
	causeBytes = 200
	// namedClusters is how many clusters with the same cause are named.
	namedClusters = 10
	// margin is for what stands between the parts of a message.
	margin = 50
)

// Enumerate appends to a text the causes of clusters, as "m1, m2: cause; m3: other
// cause", as many as a message may hold, and the number of clusters left out. A
// cause that all clusters share gets all the room there is.
func Enumerate(text string, byCluster map[string]string) string {
	list := group(byCluster, room(text, byCluster))
	limit := conditions.MaxMessageBytes - len("; and 1000000 more clusters")
	var parts []string
	used, omitted := len(text), 0
	for i, each := range list {
		part := each.String()
		if used+len(part)+len("; ") > limit {
			for _, rest := range list[i:] {
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

// clause is a cause with the clusters that share it.
type clause struct {
	clusters []string
	cause    string
}

func (c clause) String() string {
	names := slices.Clone(c.clusters)
	if more := len(names) - namedClusters; more > 0 {
		names = append(names[:namedClusters], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ") + ": " + c.cause
}

// group returns the causes, cut to a number of bytes, in the order of the first
// cluster of each.
func group(byCluster map[string]string, bytes int) []clause {
	var list []clause
	at := map[string]int{}
	for _, cluster := range slices.Sorted(maps.Keys(byCluster)) {
		cause := conditions.Shorten(byCluster[cluster], bytes)
		i, known := at[cause]
		if !known {
			i = len(list)
			at[cause] = i
			list = append(list, clause{cause: cause})
		}
		list[i].clusters = append(list[i].clusters, cluster)
	}
	return list
}

// room returns how many bytes there are for each cause.
func room(text string, byCluster map[string]string) int {
	if sets.New(slices.Collect(maps.Values(byCluster))...).Len() > 1 {
		return causeBytes
	}
	shared := clause{clusters: slices.Sorted(maps.Keys(byCluster))}
	return max(causeBytes, conditions.MaxMessageBytes-len(shared.String())-len(text)-margin)
}
