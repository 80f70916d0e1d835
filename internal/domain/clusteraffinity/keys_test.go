package clusteraffinity

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestClusterKeys(t *testing.T) {
	before := newCluster("a", labelled(map[string]string{"tier": "1"}), inRegion("eu"), ofProvider("p"), inZones("z1", "z2"))
	after := newCluster("a", labelled(map[string]string{"tier": "2"}))
	want := []string{
		"any", "field:provider", "field:provider=p", "field:region", "field:region=eu", "field:zone", "field:zone=z1", "field:zone=z2",
		"label:tier", "label:tier=1", "label:tier=2", "name=a",
	}
	if diff := cmp.Diff(want, ClusterKeys(before, after)); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}
