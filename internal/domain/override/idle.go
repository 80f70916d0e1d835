package override

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/policy"
)

// Idle returns the entries for commands and arguments that concern a template in a
// cluster and name a container which it does not have. Apply leaves them out
// without an error: a policy may be about many workloads. Each text names the
// policy, the entry, the object and its containers.
func Idle(template *unstructured.Unstructured, cluster *clusterv1alpha1.Cluster, clusterPolicies, namespacePolicies []Object) []string {
	if containersOf(template.GetKind()) == nil {
		return nil
	}
	containers := containerNames(template)
	var idle []string
	for _, group := range [][]Object{clusterPolicies, inNamespace(namespacePolicies, template.GetNamespace())} {
		for _, matching := range match(template, group) {
			for _, rule := range rulesOf(matching) {
				if rule.covers(cluster) {
					idle = append(idle, rule.idle(template, containers)...)
				}
			}
		}
	}
	return idle
}

func (r rule) idle(template *unstructured.Unstructured, containers []string) []string {
	var idle []string
	for _, list := range []struct {
		name    string
		entries []policyv1alpha1.CommandArgsOverrider
	}{{"commandOverrider", r.overriders.CommandOverrider}, {"argsOverrider", r.overriders.ArgsOverrider}} {
		for i := range list.entries {
			if name := list.entries[i].ContainerName; !slices.Contains(containers, name) {
				idle = append(idle, fmt.Sprintf("%s, %s.%s[%d]: %s %s has no container %q; it has %s",
					r.policy, r.field, list.name, i, template.GetKind(), nameOf(template), name, quoted(containers)))
			}
		}
	}
	return idle
}

func containerNames(template *unstructured.Unstructured) []string {
	var names []string
	// What is no list of containers is found by Apply.
	_ = eachContainer(template, func(_ pointer, container map[string]any) error {
		if name, ok := container["name"].(string); ok {
			names = append(names, name)
		}
		return nil
	})
	slices.Sort(names)
	return names
}

func nameOf(template *unstructured.Unstructured) string {
	return policy.Claim{Namespace: template.GetNamespace(), Name: template.GetName()}.String()
}

func quoted(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = strconv.Quote(name)
	}
	return strings.Join(texts, ", ")
}
