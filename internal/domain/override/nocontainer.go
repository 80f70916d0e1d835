package override

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/jsonpointer"
	"karmada.io/karmada/internal/domain/policy"
)

// EntriesWithoutContainer returns the command and args entries that apply to a template in a
// cluster but name a container that the template does not have. Apply ignores such entries without
// an error, because a policy may select many workloads. Each message contains the policy, the
// entry, the object and its containers.
func EntriesWithoutContainer(template *unstructured.Unstructured, cluster *clusterv1alpha1.Cluster, clusterPolicies, namespacePolicies []Object) []string {
	if containersPath(template.GetKind()) == nil {
		return nil
	}
	containers := containerNames(template)
	var messages []string
	for _, group := range [][]Object{clusterPolicies, onlyInNamespace(namespacePolicies, template.GetNamespace())} {
		for _, matching := range matchingPolicies(template, group) {
			for _, rule := range rulesOf(matching) {
				if rule.appliesTo(cluster) {
					messages = append(messages, rule.entriesWithoutContainer(template, containers)...)
				}
			}
		}
	}
	return messages
}

func (r rule) entriesWithoutContainer(template *unstructured.Unstructured, containers []string) []string {
	var messages []string
	for _, list := range []struct {
		name    string
		entries []policyv1alpha1.CommandArgsOverrider
	}{{"commandOverrider", r.overriders.CommandOverrider}, {"argsOverrider", r.overriders.ArgsOverrider}} {
		for i := range list.entries {
			if name := list.entries[i].ContainerName; !slices.Contains(containers, name) {
				messages = append(messages, fmt.Sprintf("%s, %s.%s[%d]: %s %s has no container %q; it has %s",
					r.policy, r.field, list.name, i, template.GetKind(), namespacedName(template), name, quoteNames(containers)))
			}
		}
	}
	return messages
}

func containerNames(template *unstructured.Unstructured) []string {
	var names []string
	// The error is ignored, because Apply reports it if the list of containers is not valid.
	_ = forEachContainer(template, func(_ jsonpointer.Pointer, container map[string]any) error {
		if name, ok := container["name"].(string); ok {
			names = append(names, name)
		}
		return nil
	})
	slices.Sort(names)
	return names
}

func namespacedName(template *unstructured.Unstructured) string {
	return policy.Claim{Namespace: template.GetNamespace(), Name: template.GetName()}.String()
}

func quoteNames(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = strconv.Quote(name)
	}
	return strings.Join(texts, ", ")
}
