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

// states are all objects of instances, as text, by instance and by where and what
// they are. What must differ between two runs that end alike is evened out.
type states map[string]map[string]string

// uids are those of objects of instances in members, by instance and object.
type uids map[string]map[string]string

var kindsOfInstances = map[string][]schema.GroupVersionKind{
	"karmada": {
		{Version: "v1", Kind: "Namespace"}, {Version: "v1", Kind: "ConfigMap"}, {Group: "apps", Version: "v1", Kind: "Deployment"},
		policyv1alpha1.GroupVersion.WithKind("PropagationPolicy"), policyv1alpha1.GroupVersion.WithKind("OverridePolicy"),
		workv1alpha2.GroupVersion.WithKind("ResourceBinding"), workv1alpha1.GroupVersion.WithKind("Work"),
	},
	"member": {{Version: "v1", Kind: "Namespace"}, {Version: "v1", Kind: "ConfigMap"}, {Group: "apps", Version: "v1", Kind: "Deployment"}},
}

// stored reads all objects of all instances.
func stored(ctx context.Context, env *testenv.Env) (states, uids, error) {
	all, ids := states{}, uids{}
	for _, from := range append([]string{"karmada"}, member1, member2, member3) {
		reader, kinds := client.Client(env.Karmada), kindsOfInstances["karmada"]
		if from != "karmada" {
			reader, kinds = member(env, from), kindsOfInstances["member"]
		}
		for _, kind := range kinds {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind)
			if err := reader.List(ctx, list); err != nil {
				return nil, nil, fmt.Errorf("listing %s of %s: %w", kind.Kind, from, err)
			}
			for i := range list.Items {
				if err := all.add(from, &list.Items[i]); err != nil {
					return nil, nil, err
				}
				if from != "karmada" {
					ids.add(from, &list.Items[i])
				}
			}
		}
	}
	return all, ids, nil
}

func keyOf(from string, object *unstructured.Unstructured) (instance, key string) {
	part := partName.FindStringSubmatch(object.GetName())
	if part == nil {
		return "", ""
	}
	if cluster, ok := strings.CutPrefix(object.GetNamespace(), "karmada-es-"); ok {
		from += " for " + cluster
	}
	return instanceName.FindString(object.GetName()), strings.Join([]string{from, object.GetKind(), part[1]}, " ")
}

func (u uids) add(from string, object *unstructured.Unstructured) {
	instance, key := keyOf(from, object)
	if u[instance] == nil {
		u[instance] = map[string]string{}
	}
	u[instance][key] = string(object.GetUID())
}

// add puts an object into the states if it is one of an instance.
func (s states) add(from string, object *unstructured.Unstructured) error {
	instance, key := keyOf(from, object)
	if instance == "" {
		return nil
	}
	text, err := evened(instance, object)
	if err != nil {
		return fmt.Errorf("evening out %s of %s: %w", key, instance, err)
	}
	if s[instance] == nil {
		s[instance] = map[string]string{}
	}
	if _, twice := s[instance][key]; twice {
		return fmt.Errorf("%s has %s twice", instance, key)
	}
	s[instance][key] = text
	return nil
}

var anyUUID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// evened is an object as text without times, versions and ids. Names are those of
// one and the same instance.
func evened(instance string, object *unstructured.Unstructured) (string, error) {
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
	even(content, float64(generation))
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(content); err != nil {
		return "", err
	}
	known := map[string]string{}
	return anyUUID.ReplaceAllStringFunc(text.String(), func(id string) string {
		if _, ok := known[id]; !ok {
			known[id] = fmt.Sprintf("id-%d", len(known)+1)
		}
		return known[id]
	}), nil
}

// templateState is an annotation with a hash of the template, its uid included.
const templateState = "policy.karmada.io/template-state"

// even takes out of a value what differs between two runs: times, versions, and
// generations, of which only whether they are the newest one counts.
func even(value any, generation float64) {
	switch value := value.(type) {
	case []any:
		for _, each := range value {
			even(each, generation)
		}
	case map[string]any:
		for key, each := range value {
			switch key {
			case "managedFields", "resourceVersion", "creationTimestamp", "generation",
				"lastTransitionTime", "lastUpdateTime", "lastScheduledTime", "uid", templateState:
				delete(value, key)
			case "deletionTimestamp":
				value[key] = true
			case "observedGeneration", "schedulerObservedGeneration":
				value[key] = each == generation
			case "manifestStatuses", "aggregatedStatus":
				even(each, -1) // generations of other objects
			case "conditions":
				inOrder(each)
				even(each, generation)
			default:
				even(each, generation)
			}
		}
	}
}

// inOrder sorts conditions, which are a map by their types.
func inOrder(value any) {
	conditions, ok := value.([]any)
	if !ok {
		return
	}
	slices.SortFunc(conditions, func(a, b any) int { return strings.Compare(typeOf(a), typeOf(b)) })
}

func typeOf(condition any) string {
	fields, _ := condition.(map[string]any)
	name, _ := fields["type"].(string)
	return name
}
