package estimators

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"

	"karmada.io/karmada/internal/access/estimators/estimatorpb"
)

// wireFields lists the fields of each message as existing clients and estimators know them.
var wireFields = map[string][]string{
	"MaxAvailableReplicasRequest":       {"1: string cluster", "2: ReplicaRequirements replicaRequirements", "3: repeated AssumedWorkload assumedWorkloads"},
	"MaxAvailableReplicasResponse":      {"1: int32 maxReplicas"},
	"MaxAvailableComponentSetsRequest":  {"1: string cluster", "2: repeated Component components", "3: string namespace", "4: repeated AssumedWorkload assumedWorkloads"},
	"MaxAvailableComponentSetsResponse": {"1: int32 maxSets"},
	"UnschedulableReplicasRequest":      {"1: string cluster", "2: ObjectReference resource", "3: int64 unschedulableThreshold"},
	"UnschedulableReplicasResponse":     {"1: int32 unschedulableReplicas"},
	"ReplicaRequirements":               {"1: NodeClaim nodeClaim", "3: string namespace", "4: string priorityClassName", "5: map<string,bytes> resourceRequestBytes"},
	"Component":                         {"1: string name", "2: ComponentReplicaRequirements replicaRequirements", "3: int32 replicas"},
	"ComponentReplicaRequirements":      {"1: NodeClaim nodeClaim", "3: string priorityClassName", "4: map<string,bytes> resourceRequestBytes"},
	"AssumedWorkload":                   {"1: string namespace", "2: repeated Component components"},
	"NodeClaim":                         {"2: map<string,string> nodeSelector", "4: bytes nodeAffinityBytes", "5: repeated bytes tolerationsBytes"},
	"ObjectReference":                   {"1: string apiVersion", "2: string kind", "3: string namespace", "4: string name"},
}

func TestMessagesAreTheWireFormat(t *testing.T) {
	file, got := estimatorpb.File_karmada_estimator_messages_proto, map[string][]string{}
	if pkg := string(file.Package()); pkg != "github.com.karmada_io.karmada.pkg.estimator.pb" {
		t.Errorf("package %s", pkg)
	}
	for i := range file.Messages().Len() {
		message := file.Messages().Get(i)
		for j := range message.Fields().Len() {
			got[string(message.Name())] = append(got[string(message.Name())], describeField(message.Fields().Get(j)))
		}
	}
	if diff := cmp.Diff(wireFields, got); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func describeField(field protoreflect.FieldDescriptor) string {
	kind := typeName(field)
	switch {
	case field.IsMap():
		kind = fmt.Sprintf("map<%s,%s>", typeName(field.MapKey()), typeName(field.MapValue()))
	case field.IsList():
		kind = "repeated " + kind
	}
	return fmt.Sprintf("%d: %s %s", field.Number(), kind, field.Name())
}

func typeName(field protoreflect.FieldDescriptor) string {
	if field.Message() != nil {
		return string(field.Message().Name())
	}
	return strings.ToLower(field.Kind().String())
}

func TestMethodsAreTheWireFormat(t *testing.T) {
	const service = "/github.com.karmada_io.karmada.pkg.estimator.service.Estimator/"
	want := map[string]string{
		service + "MaxAvailableReplicas":      "MaxAvailableReplicasRequest MaxAvailableReplicasResponse",
		service + "MaxAvailableComponentSets": "MaxAvailableComponentSetsRequest MaxAvailableComponentSetsResponse",
		service + "GetUnschedulableReplicas":  "UnschedulableReplicasRequest UnschedulableReplicasResponse",
	}
	got := map[string]string{}
	services := estimatorpb.File_karmada_estimator_service_proto.Services()
	for i := range services.Len() {
		methods := services.Get(i).Methods()
		for j := range methods.Len() {
			method := methods.Get(j)
			got[fmt.Sprintf("/%s/%s", services.Get(i).FullName(), method.Name())] = fmt.Sprintf("%s %s", method.Input().Name(), method.Output().Name())
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("methods (-want +got):\n%s", diff)
	}
}
