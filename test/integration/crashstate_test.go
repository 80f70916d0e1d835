package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/testenv"
)

// instanceStates maps each instance to the normalized text of its objects. The key of an object
// consists of its side (the control plane or a member), its kind and its part of the instance.
// Values that differ between two runs with the same end state are removed.
type instanceStates map[string]map[string]string

// instanceUIDs maps each instance to the UIDs of its member objects.
type instanceUIDs map[string]map[string]string

var scenarioKinds = map[string][]schema.GroupVersionKind{
	"karmada": {
		{Version: "v1", Kind: "Namespace"}, {Version: "v1", Kind: "ConfigMap"}, {Group: "apps", Version: "v1", Kind: "Deployment"},
		policyv1alpha1.GroupVersion.WithKind("PropagationPolicy"), policyv1alpha1.GroupVersion.WithKind("OverridePolicy"),
		workv1alpha2.GroupVersion.WithKind("ResourceBinding"), workv1alpha1.GroupVersion.WithKind("Work"),
	},
	"member": {{Version: "v1", Kind: "Namespace"}, {Version: "v1", Kind: "ConfigMap"}, {Group: "apps", Version: "v1", Kind: "Deployment"}},
}

// readInstances reads all objects of all instances.
func readInstances(ctx context.Context, env *testenv.Env) (instanceStates, instanceUIDs, error) {
	states, ids := instanceStates{}, instanceUIDs{}
	for _, side := range append([]string{"karmada"}, member1, member2, member3) {
		reader, kinds := client.Client(env.Karmada), scenarioKinds["karmada"]
		if side != "karmada" {
			reader, kinds = memberClient(env, side), scenarioKinds["member"]
		}
		for _, kind := range kinds {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind)
			if err := reader.List(ctx, list); err != nil {
				return nil, nil, fmt.Errorf("listing %s of %s: %w", kind.Kind, side, err)
			}
			for i := range list.Items {
				if err := states.add(side, &list.Items[i]); err != nil {
					return nil, nil, err
				}
				if side != "karmada" {
					ids.add(side, &list.Items[i])
				}
			}
		}
	}
	return states, ids, nil
}

// instanceKey returns the instance of an object, if any, and the key of the object in its state.
func instanceKey(side string, object *unstructured.Unstructured) (instance, key string) {
	part := partNamePattern.FindStringSubmatch(object.GetName())
	if part == nil {
		return "", ""
	}
	if cluster, ok := strings.CutPrefix(object.GetNamespace(), "karmada-es-"); ok {
		side += " for " + cluster
	}
	return instanceNamePattern.FindString(object.GetName()), strings.Join([]string{side, object.GetKind(), part[1]}, " ")
}

// add adds the UID of an object.
func (i instanceUIDs) add(side string, object *unstructured.Unstructured) {
	instance, key := instanceKey(side, object)
	if i[instance] == nil {
		i[instance] = map[string]string{}
	}
	i[instance][key] = string(object.GetUID())
}

// add adds an object to the states if it belongs to an instance.
func (i instanceStates) add(side string, object *unstructured.Unstructured) error {
	instance, key := instanceKey(side, object)
	if instance == "" {
		return nil
	}
	text, err := normalizedText(instance, object)
	if err != nil {
		return fmt.Errorf("normalizing %s of %s: %w", key, instance, err)
	}
	if i[instance] == nil {
		i[instance] = map[string]string{}
	}
	if _, twice := i[instance][key]; twice {
		return fmt.Errorf("%s has %s twice", instance, key)
	}
	i[instance][key] = text
	return nil
}

var uuidPattern = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// normalizedText returns an object as text without times, versions and IDs. The name of the instance
// is replaced.
func normalizedText(instance string, object *unstructured.Unstructured) (string, error) {
	raw, err := json.Marshal(object)
	if err != nil {
		return "", err
	}
	names := strings.NewReplacer(
		work.Name("Deployment", instance, "web-"+instance), "work-of-web",
		work.Name("ConfigMap", instance, "settings-"+instance), "work-of-settings",
		work.Name("Namespace", "", instance), "work-of-namespace",
		binding.ReferenceKey(instance, binding.Name("web-"+instance, "Deployment")), "key-of-web",
		instance, "X")
	var content map[string]any
	if err := json.Unmarshal([]byte(names.Replace(string(raw))), &content); err != nil {
		return "", err
	}
	generation := object.GetGeneration()
	normalize(content, float64(generation))
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(content); err != nil {
		return "", err
	}
	known := map[string]string{}
	return uuidPattern.ReplaceAllStringFunc(text.String(), func(id string) string {
		if _, ok := known[id]; !ok {
			known[id] = fmt.Sprintf("id-%d", len(known)+1)
		}
		return known[id]
	}), nil
}

// templateStateAnnotation is an annotation with a hash of the template including its UID.
const templateStateAnnotation = "policy.karmada.io/template-state"

// normalize removes what differs between two runs: times, versions and UIDs. It replaces each
// observed generation by whether this is the current generation.
func normalize(value any, generation float64) {
	switch value := value.(type) {
	case []any:
		for _, each := range value {
			normalize(each, generation)
		}
	case map[string]any:
		for key, each := range value {
			switch key {
			case "managedFields", "resourceVersion", "creationTimestamp", "generation",
				"lastTransitionTime", "lastUpdateTime", "lastScheduledTime", "uid", templateStateAnnotation:
				delete(value, key)
			case workv1alpha2.DepartedClustersAnnotation, workv1alpha2.ScheduledStateAnnotation: // clusters with times; a hash with UIDs
				value[key] = true
			case "deletionTimestamp", workv1alpha1.RenderedFromAnnotation: // a hash with the UID of the template, and its version
				value[key] = true
			case "observedGeneration", "schedulerObservedGeneration":
				value[key] = each == generation
			case "manifestStatuses", "aggregatedStatus":
				normalize(each, -1) // generations of other objects
			case "conditions":
				sortConditions(each)
				normalize(each, generation)
			default:
				normalize(each, generation)
			}
		}
	}
}

// sortConditions sorts conditions by type, because their order differs between runs.
func sortConditions(value any) {
	conditions, ok := value.([]any)
	if !ok {
		return
	}
	slices.SortFunc(conditions, func(a, b any) int { return strings.Compare(conditionType(a), conditionType(b)) })
}

func conditionType(condition any) string {
	fields, _ := condition.(map[string]any)
	name, _ := fields["type"].(string)
	return name
}
