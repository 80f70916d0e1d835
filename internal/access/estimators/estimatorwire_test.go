package estimators

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/estimators/estimatorpb"
	"karmada.io/karmada/internal/domain/capacity"
)

// throughBytes marshals a message and returns the message that the receiver gets.
func throughBytes[Message proto.Message](t rapid.TB, sent, received Message) Message {
	t.Helper()
	encoded, err := proto.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	if err := proto.Unmarshal(encoded, received); err != nil {
		t.Fatal(err)
	}
	return received
}

func quantities() *rapid.Generator[resource.Quantity] {
	return rapid.Custom(func(t *rapid.T) resource.Quantity {
		format := rapid.SampledFrom([]resource.Format{resource.DecimalSI, resource.BinarySI, resource.DecimalExponent}).Draw(t, "format")
		if rapid.Bool().Draw(t, "milli") {
			return *resource.NewMilliQuantity(rapid.Int64Range(0, math.MaxInt64).Draw(t, "milli amount"), format)
		}
		return *resource.NewQuantity(rapid.Int64Range(0, math.MaxInt64).Draw(t, "amount"), format)
	})
}

func resourceLists() *rapid.Generator[corev1.ResourceList] {
	names := rapid.SampledFrom([]corev1.ResourceName{"cpu", "memory", "pods", "nvidia.com/gpu", "hugepages-2Mi"})
	return rapid.Custom(func(t *rapid.T) corev1.ResourceList {
		return rapid.MapOfN(names, quantities(), 0, 4).Draw(t, "resources")
	})
}

func nodeClaims() *rapid.Generator[*workv1alpha2.NodeClaim] {
	words := rapid.StringMatching(`[a-z]{0,5}`)
	return rapid.Custom(func(t *rapid.T) *workv1alpha2.NodeClaim {
		if rapid.Bool().Draw(t, "no claim") {
			return nil
		}
		claim := &workv1alpha2.NodeClaim{NodeSelector: rapid.MapOfN(words, words, 0, 3).Draw(t, "selector")}
		if rapid.Bool().Draw(t, "affinity") {
			claim.HardNodeAffinity = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: words.Draw(t, "key"), Operator: corev1.NodeSelectorOpIn, Values: rapid.SliceOfN(words, 1, 3).Draw(t, "values")}},
			}}}
		}
		for range rapid.IntRange(0, 3).Draw(t, "tolerations") {
			toleration := corev1.Toleration{Key: words.Draw(t, "key"), Operator: corev1.TolerationOpEqual, Value: words.Draw(t, "value"), Effect: corev1.TaintEffectNoExecute}
			if rapid.Bool().Draw(t, "limited") {
				toleration.TolerationSeconds = new(rapid.Int64().Draw(t, "seconds"))
			}
			claim.Tolerations = append(claim.Tolerations, toleration)
		}
		return claim
	})
}

func components() *rapid.Generator[[]workv1alpha2.Component] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) workv1alpha2.Component {
		component := workv1alpha2.Component{Name: rapid.StringMatching(`[a-z]{1,5}`).Draw(t, "name"), Replicas: rapid.Int32Range(0, math.MaxInt32).Draw(t, "replicas")}
		if rapid.Bool().Draw(t, "requirements") {
			component.ReplicaRequirements = &workv1alpha2.ComponentReplicaRequirements{
				NodeClaim: nodeClaims().Draw(t, "claim"), ResourceRequest: resourceLists().Draw(t, "request"), PriorityClassName: rapid.StringMatching(`[a-z]{0,5}`).Draw(t, "class"),
			}
		}
		return component
	}), 0, 3)
}

func assumedWorkloads() *rapid.Generator[[]capacity.AssumedWorkload] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) capacity.AssumedWorkload {
		return capacity.AssumedWorkload{Namespace: rapid.StringMatching(`[a-z]{1,5}`).Draw(t, "namespace"), Components: components().Draw(t, "components")}
	}), 0, 3)
}

// equalValues compares quantities by value, and empty lists with absent lists as equal.
var equalValues = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }),
}

func TestReplicasRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		demand, assumed := capacity.Demand{}, assumedWorkloads().Draw(t, "assumed")
		if rapid.Bool().Draw(t, "requirements") {
			demand.Workload.Namespace = rapid.StringMatching(`[a-z]{1,5}`).Draw(t, "namespace")
			demand.Requirements = &workv1alpha2.ReplicaRequirements{
				NodeClaim: nodeClaims().Draw(t, "claim"), ResourceRequest: resourceLists().Draw(t, "request"),
				Namespace: demand.Workload.Namespace, PriorityClassName: rapid.StringMatching(`[a-z]{0,5}`).Draw(t, "class"),
			}
		}
		request, err := EncodeReplicas("east", demand, assumed)
		if err != nil {
			t.Fatal(err)
		}
		gotDemand, gotAssumed, err := DecodeReplicas(throughBytes(t, request, &estimatorpb.MaxAvailableReplicasRequest{}))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(demand, gotDemand, equalValues); diff != "" || request.GetCluster() != "east" {
			t.Errorf("cluster %s, demand (-want +got):\n%s", request.GetCluster(), diff)
		}
		if diff := cmp.Diff(assumed, gotAssumed, equalValues); diff != "" {
			t.Errorf("assumed workloads (-want +got):\n%s", diff)
		}
	})
}

func TestSetsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		demand, assumed := capacity.Demand{Components: components().Draw(t, "components")}, assumedWorkloads().Draw(t, "assumed")
		demand.Workload.Namespace = rapid.StringMatching(`[a-z]{0,5}`).Draw(t, "namespace")
		request, err := EncodeSets("east", demand, assumed)
		if err != nil {
			t.Fatal(err)
		}
		gotDemand, gotAssumed, err := DecodeSets(throughBytes(t, request, &estimatorpb.MaxAvailableComponentSetsRequest{}))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(demand, gotDemand, equalValues); diff != "" || request.GetCluster() != "east" {
			t.Errorf("cluster %s, demand (-want +got):\n%s", request.GetCluster(), diff)
		}
		if diff := cmp.Diff(assumed, gotAssumed, equalValues); diff != "" {
			t.Errorf("assumed workloads (-want +got):\n%s", diff)
		}
	})
}

func TestUnschedulableRoundTrip(t *testing.T) {
	workload := workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	for sent, want := range map[time.Duration]time.Duration{5 * time.Minute: 5 * time.Minute, -time.Second: 0} {
		request := throughBytes(t, EncodeUnschedulable("east", workload, sent), &estimatorpb.UnschedulableReplicasRequest{})
		got, threshold, err := DecodeUnschedulable(request)
		if err != nil || got != workload || threshold != want || request.GetCluster() != "east" {
			t.Errorf("%+v, %s, %v; want %+v, %s", got, threshold, err, workload, want)
		}
	}
	if _, _, err := DecodeUnschedulable(&estimatorpb.UnschedulableReplicasRequest{}); !errors.Is(err, errResourceNil) || err.Error() != "resource is nil" {
		t.Errorf("error %v of a request without a resource", err)
	}
}

func TestNamespaceOfRequirements(t *testing.T) {
	demand := capacity.Demand{Requirements: &workv1alpha2.ReplicaRequirements{}}
	demand.Workload.Namespace = "shop"
	request, err := EncodeReplicas("east", demand, nil)
	if err != nil || request.GetReplicaRequirements().GetNamespace() != "shop" {
		t.Errorf("request %v, %v; want the namespace of the workload", request, err)
	}
}

func TestDecodeInvalidMessages(t *testing.T) {
	withResource := func(encoded string) *estimatorpb.MaxAvailableReplicasRequest {
		return &estimatorpb.MaxAvailableReplicasRequest{ReplicaRequirements: &estimatorpb.ReplicaRequirements{ResourceRequestBytes: map[string][]byte{"cpu": []byte(encoded)}}}
	}
	withClaim := func(claim *estimatorpb.NodeClaim) *estimatorpb.MaxAvailableReplicasRequest {
		return &estimatorpb.MaxAvailableReplicasRequest{ReplicaRequirements: &estimatorpb.ReplicaRequirements{NodeClaim: claim}}
	}
	quantity := func(text string) string { return fmt.Sprintf("\n%c%s", len(text), text) }
	tests := map[string]struct {
		request *estimatorpb.MaxAvailableReplicasRequest
		want    string
	}{
		"an empty quantity is 0":            {withResource(""), ""},
		"a quantity with an exponent":       {withResource(quantity("1e30")), ""},
		"the suffix exa is no exponent":     {withResource(quantity("1E")), ""},
		"the suffix exbi is no exponent":    {withResource(quantity("1Ei")), ""},
		"bytes that are no message":         {withResource("\n\x05a"), `replicaRequirements.resourceRequestBytes["cpu"]: reading field 1`},
		"a text that is no quantity":        {withResource(quantity("many")), `parsing the quantity "many"`},
		"a negative quantity":               {withResource(quantity("-1")), "the quantity must not be negative"},
		"a large exponent":                  {withResource(quantity("1e999999999")), "the exponent of the quantity is not between -30 and 30"},
		"a small exponent":                  {withResource(quantity("1E-999999999")), "the exponent of the quantity is not between -30 and 30"},
		"an exponent of many digits":        {withResource(quantity("1e99999999999999999999")), "the exponent of the quantity"},
		"a long quantity":                   {withResource(quantity(strings.Repeat("1", 65))), "the quantity is longer than 64 bytes"},
		"a node affinity that is damaged":   {withClaim(&estimatorpb.NodeClaim{NodeAffinityBytes: []byte("\n\x05a")}), "replicaRequirements.nodeClaim.nodeAffinityBytes: "},
		"a toleration that is damaged":      {withClaim(&estimatorpb.NodeClaim{TolerationsBytes: [][]byte{nil, []byte("\n\x05a")}}), "nodeClaim.tolerationsBytes[1]: "},
		"a negative number of replicas":     {&estimatorpb.MaxAvailableReplicasRequest{AssumedWorkloads: []*estimatorpb.AssumedWorkload{{Components: []*estimatorpb.Component{{Replicas: -2}}}}}, "assumedWorkloads[0].components[0].replicas -2: must not be negative"},
		"an absent workload and component":  {&estimatorpb.MaxAvailableReplicasRequest{AssumedWorkloads: []*estimatorpb.AssumedWorkload{nil, {Components: []*estimatorpb.Component{nil}}}}, ""},
		"a message without any field":       {&estimatorpb.MaxAvailableReplicasRequest{}, ""},
		"a node claim without requirements": {withClaim(&estimatorpb.NodeClaim{}), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := DecodeReplicas(test.request)
			if (err != nil) != (test.want != "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("\n\x04east"))
	for _, text := range []string{"1e999999999", "9223372036854775807Ei", "1n"} {
		request := &estimatorpb.MaxAvailableReplicasRequest{ReplicaRequirements: &estimatorpb.ReplicaRequirements{
			ResourceRequestBytes: map[string][]byte{"cpu": append([]byte{'\n', byte(len(text))}, text...)}, NodeClaim: &estimatorpb.NodeClaim{TolerationsBytes: [][]byte{{'\n', 1, 'a'}}},
		}}
		encoded, err := proto.Marshal(request)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded)
	}
	f.Fuzz(func(t *testing.T, encoded []byte) {
		replicas, sets := &estimatorpb.MaxAvailableReplicasRequest{}, &estimatorpb.MaxAvailableComponentSetsRequest{}
		if proto.Unmarshal(encoded, replicas) == nil {
			if demand, assumed, err := DecodeReplicas(replicas); err == nil {
				if _, err := EncodeReplicas("east", demand, assumed); err != nil {
					t.Errorf("encoding what was decoded: %v", err)
				}
			}
		}
		if proto.Unmarshal(encoded, sets) == nil {
			if demand, assumed, err := DecodeSets(sets); err == nil {
				if _, err := EncodeSets("east", demand, assumed); err != nil {
					t.Errorf("encoding what was decoded: %v", err)
				}
			}
		}
	})
}
