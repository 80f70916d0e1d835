package estimator

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"karmada.io/karmada/internal/access/estimators"
	"karmada.io/karmada/internal/access/estimators/estimatorpb"
	"karmada.io/karmada/internal/domain/capacity"
)

// FuzzRequests requires that a request with any content gets a valid answer or an error.
func FuzzRequests(f *testing.F) {
	m, err := newMetrics(nil)
	if err != nil {
		f.Fatal(err)
	}
	c := newCache(true)
	for _, each := range []string{"a", "b", "c"} {
		nodeStore{c}.Set(mustReduce(f, reduceNode, node(each, "cpu=4 memory=16Gi pods=10")))
	}
	quotaStore{c}.Set(mustReduce(f, reduceQuota, quota("cpu=100", "cpu=1")))
	s := &service{cluster: "east", cache: c, metrics: m, now: time.Now, quotas: true, assumed: true, slots: make(chan struct{}, 100)}

	assumed := []capacity.AssumedWorkload{{Namespace: "shop", Components: demandOfSets(component(2, "cpu=1")).Components}}
	replicas, err := estimators.EncodeReplicas("east", demandOfReplicas("cpu=1"), assumed)
	if err != nil {
		f.Fatal(err)
	}
	sets, err := estimators.EncodeSets("east", demandOfSets(component(1, "cpu=2"), component(2, "memory=1Gi")), assumed)
	if err != nil {
		f.Fatal(err)
	}
	for _, message := range []proto.Message{replicas, sets} {
		encoded, err := proto.Marshal(message)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded)
	}
	f.Fuzz(func(t *testing.T, encoded []byte) {
		replicas, sets := &estimatorpb.MaxAvailableReplicasRequest{}, &estimatorpb.MaxAvailableComponentSetsRequest{}
		if proto.Unmarshal(encoded, replicas) == nil {
			replicas.Cluster = "east"
			if response, err := s.MaxAvailableReplicas(t.Context(), replicas); (response == nil) == (err == nil) || response.GetMaxReplicas() < 0 || response.GetMaxReplicas() > 30 {
				t.Errorf("%v, %v; at most 30 replicas fit", response, err)
			}
		}
		if proto.Unmarshal(encoded, sets) == nil {
			sets.Cluster = "east"
			if response, err := s.MaxAvailableComponentSets(t.Context(), sets); (response == nil) == (err == nil) || response.GetMaxSets() < 0 {
				t.Errorf("%v, %v", response, err)
			}
		}
	})
}
