package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/testenv"
)

// loot is the name of what an attack wants to have in a member.
const loot = "loot"

// tenancy is a namespace with users who have one role each in it, and nothing else.
type tenancy struct {
	env              *testenv.Env
	namespace, other string
	users            map[string]client.Client
}

// roles are the ClusterRoles that the users of a tenancy have in its namespace. The
// last one is given by an administrator to who needs it; the others are those of
// Kubernetes.
var roles = []string{"view", "edit", "admin", "karmada-binding-edit"}

func newTenancy(t *testing.T, env *testenv.Env) *tenancy {
	t.Helper()
	place := &tenancy{env: env, namespace: env.Namespace(t), other: env.Namespace(t), users: map[string]client.Client{}}
	for _, role := range roles {
		user := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: place.namespace + "-" + role}
		env.Create(t, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: place.namespace, Name: role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}, Subjects: []rbacv1.Subject{user},
		})
		config := rest.CopyConfig(env.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: user.Name, Groups: []string{"system:authenticated"}}
		as, err := client.New(config, client.Options{Scheme: env.Karmada.Scheme()})
		if err != nil {
			t.Fatal(err)
		}
		place.users[role] = as
	}
	testenv.Eventually(t, "the roles of Karmada are part of view", func(ctx context.Context) error {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("work.karmada.io/v1alpha2")
		list.SetKind("ResourceBindingList")
		return place.users["view"].List(ctx, list, client.InNamespace(place.namespace))
	})
	return place
}

// objects reads YAML documents, with the namespaces in the place of $NS and $OTHER.
func (p *tenancy) objects(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for document := range strings.SplitSeq(strings.NewReplacer("$NS", p.namespace, "$OTHER", p.other).Replace(text), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatalf("%v in %s", err, document)
		}
		all = append(all, object)
	}
	return all
}

func (p *tenancy) create(t *testing.T, role, text string) {
	t.Helper()
	for _, object := range p.objects(t, text) {
		if err := p.users[role].Create(t.Context(), object); err != nil {
			t.Fatalf("%s creates %s %s: %v", role, object.GetKind(), object.GetName(), err)
		}
	}
}

// tenantAttack is a request that the API server has to refuse, in these words.
type tenantAttack struct{ role, object, says string }

func overridePolicy(overriders string) string {
	return `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {namespace: $NS, name: loot}, spec: {overrideRules: [{overriders: {` + overriders + `}}]}}`
}

func handMade(apiVersion, reference string) string {
	return `{apiVersion: ` + apiVersion + `, kind: ResourceBinding, metadata: {namespace: $NS, name: loot}, spec: {resource: {` + reference + `}, clusters: [{name: member1}]}}`
}

func propagating(selector, rest string) string {
	return `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {namespace: $NS, name: loot}, spec: {resourceSelectors: [{` + selector + `}], ` + rest + `}}`
}

// refusedAttacks are those that the API server refuses.
func refusedAttacks() map[string]tenantAttack {
	const (
		v1alpha1, v1alpha2 = "work.karmada.io/v1alpha1", "work.karmada.io/v1alpha2"
		forbidden          = "is forbidden"
		identity           = "an override must not change "
		own                = `{apiVersion: v1, kind: ConfigMap, namespace: $NS, name: loot}`
	)
	clusterAdmin := `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: loot}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: mallory}]}`
	cluster := func(kind, spec string) string {
		return `{apiVersion: policy.karmada.io/v1alpha1, kind: ` + kind + `, metadata: {name: loot}, spec: {` + spec + `}}`
	}
	return map[string]tenantAttack{
		"replace the whole manifest":                  {"edit", overridePolicy(`plaintext: [{path: "", operator: replace, value: ` + clusterAdmin + `}]`), identity + "the whole manifest"},
		"replace the whole manifest, the old way":     {"edit", `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {namespace: $NS, name: loot}, spec: {overriders: {plaintext: [{path: "", operator: add, value: ` + clusterAdmin + `}]}}}`, identity + "the whole manifest"},
		"change the kind":                             {"edit", overridePolicy(`plaintext: [{path: /kind, operator: replace, value: Secret}]`), identity + "the kind"},
		"change the namespace":                        {"edit", overridePolicy(`plaintext: [{path: /metadata/namespace, operator: replace, value: kube-system}]`), identity + "the namespace"},
		"remove the namespace":                        {"edit", overridePolicy(`plaintext: [{path: /metadata/namespace, operator: remove}]`), identity + "the namespace"},
		"change the name":                             {"edit", overridePolicy(`plaintext: [{path: /metadata/name, operator: replace, value: loot}]`), identity + "the name"},
		"replace the metadata":                        {"edit", overridePolicy(`plaintext: [{path: /metadata, operator: replace, value: {name: loot, namespace: kube-system}}]`), identity + "the namespace"},
		"take the name for an image":                  {"edit", overridePolicy(`imageOverrider: [{component: Repository, operator: replace, value: loot, predicate: {path: /metadata/name}}]`), identity + "the name"},
		"take the namespace for a document":           {"admin", overridePolicy(`fieldOverrider: [{fieldPath: /metadata/namespace, yaml: [{subPath: "", operator: replace, value: kube-system}]}]`), identity + "the namespace"},
		"override in another namespace":               {"edit", `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {namespace: $NS, name: loot}, spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap, namespace: $OTHER}]}}`, "must be the namespace of the policy"},
		"store an override in another namespace":      {"edit", `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {namespace: $OTHER, name: loot}, spec: {}}`, forbidden},
		"propagate from another namespace":            {"edit", propagating(`apiVersion: v1, kind: Secret, namespace: karmada-cluster`, ""), "must be the namespace of the policy"},
		"take a template of another namespace over":   {"edit", propagating(`apiVersion: v1, kind: ConfigMap, namespace: $OTHER, name: loot`, "preemption: Always, priority: 100"), "must be the namespace of the policy"},
		"propagate everything":                        {"edit", cluster("ClusterPropagationPolicy", `resourceSelectors: [{apiVersion: v1, kind: Secret}]`), forbidden},
		"override everything":                         {"admin", cluster("ClusterOverridePolicy", ""), forbidden},
		"propagate as a reader":                       {"view", propagating(`apiVersion: v1, kind: ConfigMap`, ""), forbidden},
		"override as a reader":                        {"view", overridePolicy(`plaintext: [{path: /data, operator: remove}]`), forbidden},
		"bind without a policy":                       {"edit", handMade(v1alpha2, `apiVersion: v1, kind: ConfigMap, namespace: $NS, name: loot`), forbidden},
		"bind without a policy, as administrator":     {"admin", handMade(v1alpha1, `apiVersion: v1, kind: ConfigMap, namespace: $NS, name: loot`), forbidden},
		"bind what has no namespace":                  {"admin", `{apiVersion: work.karmada.io/v1alpha2, kind: ClusterResourceBinding, metadata: {name: loot}, spec: {resource: {apiVersion: v1, kind: Namespace, name: $NS}}}`, forbidden},
		"write a Work in the own namespace":           {"edit", `{apiVersion: work.karmada.io/v1alpha1, kind: Work, metadata: {namespace: $NS, name: loot}, spec: {}}`, forbidden},
		"write a Work of a cluster":                   {"admin", `{apiVersion: work.karmada.io/v1alpha1, kind: Work, metadata: {namespace: karmada-es-member1, name: loot}, spec: {}}`, forbidden},
		"give oneself the right to bind":              {"admin", `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: $NS, name: loot}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: karmada-binding-edit}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: mallory}]}`, forbidden},
		"register a cluster":                          {"admin", `{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: loot}, spec: {syncMode: Push, apiEndpoint: "https://192.0.2.1", secretRef: {namespace: $NS, name: loot}}}`, forbidden},
		"move workloads":                              {"admin", `{apiVersion: apps.karmada.io/v1alpha1, kind: WorkloadRebalancer, metadata: {name: loot}, spec: {workloads: [{apiVersion: apps/v1, kind: Deployment, namespace: $OTHER, name: web}]}}`, forbidden},
		"bind the credentials of a cluster":           {"karmada-binding-edit", handMade(v1alpha2, `apiVersion: v1, kind: Secret, namespace: karmada-cluster, name: member2`), "must not refer to"},
		"bind the credentials of a cluster, in v1":    {"karmada-binding-edit", handMade(v1alpha1, `apiVersion: v1, kind: Secret, namespace: karmada-cluster, name: member2`), "must not refer to"},
		"bind an object of another namespace":         {"karmada-binding-edit", handMade(v1alpha2, `apiVersion: v1, kind: ConfigMap, namespace: $OTHER, name: loot`), "must not refer to"},
		"bind what has no namespace to the namespace": {"karmada-binding-edit", handMade(v1alpha2, `apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: cluster-admin`), "must not refer to"},
		"bind what is never propagated":               {"karmada-binding-edit", handMade(v1alpha2, `apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, namespace: $NS, name: loot`), "is never propagated"},
		"bind a binding":                              {"karmada-binding-edit", handMade(v1alpha2, `apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, namespace: $NS, name: loot`), "is never propagated"},
		"schedule for others":                         {"karmada-binding-edit", `{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {namespace: $OTHER, name: loot}, spec: {resource: ` + own + `}}`, forbidden},
	}
}

// TestATenantStaysATenant attacks as users who have a role in one namespace. What is
// not refused must be harmless: what exists in the members and in the control plane
// counts.
func TestATenantStaysATenant(t *testing.T) {
	env := shared(t)
	place := newTenancy(t, env)
	env.Create(t, configMap(place.other, loot))
	for what, attack := range refusedAttacks() {
		t.Run(what, func(t *testing.T) {
			object := place.objects(t, attack.object)[0]
			err := place.users[attack.role].Create(t.Context(), object)
			if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), attack.says) {
				t.Errorf("the answer is %v, want a refusal that says %q", err, attack.says)
			}
		})
	}
	t.Run("what the components made is not written", place.changesNoBinding)
	t.Run("an override that changes the group", place.changesTheGroup)
	t.Run("an override that gives rights", place.givesNoRights)
	t.Run("forged marks", place.forgesNoMarks)
	t.Run("the id of another binding", place.copiesNoID)
	t.Run("a Secret elsewhere as a dependency", place.takesNoSecretAlong)
	t.Run("a kind without namespaces", place.selectsNothingOutside)
	place.lootNowhere(t)
}

// propagationOf is a policy that propagates one object to a member, with what it refers
// to, and takes over what is there.
func propagationOf(apiVersion, kind, name string) string {
	return strings.NewReplacer("$VERSION", apiVersion, "$KIND", kind, "$NAME", name).Replace(
		`{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {namespace: $NS, name: $NAME}, spec: {propagateDeps: true, conflictResolution: Overwrite, resourceSelectors: [{apiVersion: $VERSION, kind: $KIND, name: $NAME}], placement: {clusterAffinity: {clusterNames: [member1]}}}}`)
}

func (p *tenancy) changesNoBinding(t *testing.T) {
	p.create(t, "edit", "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: $NS, name: plain}, data: {color: blue}}\n---\n"+propagationOf("v1", "ConfigMap", "plain"))
	template := configMap(p.namespace, "plain")
	inMember(t, p.env, member1, template, hasColor("blue"))
	bound := await(t, p.env.Karmada, bindingOf(t, template), delivered)
	for _, role := range []string{"view", "edit", "admin"} {
		as := p.users[role]
		change := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"clusters":[{"name":"member2"}]}}`))
		report := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"aggregatedStatus":[]}}`))
		for what, err := range map[string]error{
			"change": as.Patch(t.Context(), bound.DeepCopy(), change),
			"report": as.Status().Patch(t.Context(), bound.DeepCopy(), report),
			"delete": as.Delete(t.Context(), bound.DeepCopy()),
			"read":   as.Get(t.Context(), client.ObjectKeyFromObject(bound), bound.DeepCopy()),
		} {
			if apierrors.IsForbidden(err) != (what != "read") {
				t.Errorf("%s wants to %s a binding: %v", role, what, err)
			}
		}
		if err := as.List(t.Context(), &corev1.SecretList{}, client.InNamespace("karmada-cluster")); !apierrors.IsForbidden(err) {
			t.Errorf("%s reads the credentials of clusters: %v", role, err)
		}
	}
	stray := bound.DeepCopy()
	stray.Spec.Resource.Namespace = p.other
	if err := p.users["karmada-binding-edit"].Update(t.Context(), stray); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "must not refer to") {
		t.Errorf("a binding is turned to another namespace: %v", err)
	}
}

// awaitReason waits until a binding names all of the texts as a reason why it is not applied.
func (p *tenancy) awaitReason(t *testing.T, template client.Object, texts ...string) {
	t.Helper()
	await(t, p.env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		found := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.FullyApplied)
		if found == nil || found.Status != metav1.ConditionFalse {
			return fmt.Errorf("the condition is %v", found)
		}
		for _, text := range texts {
			if !strings.Contains(found.Message, text) {
				return fmt.Errorf("the condition says %q, want %q in it", found.Message, text)
			}
		}
		return nil
	})
}

func (p *tenancy) changesTheGroup(t *testing.T) {
	const other = `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {namespace: $NS, name: regroup}, spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: regrouped}], overrideRules: [{overriders: {plaintext: [{path: /data/color, operator: replace, value: red}]}}, {overriders: {plaintext: [{path: /apiVersion, operator: replace, value: rbac.authorization.k8s.io/v1}]}}]}}`
	p.create(t, "edit", "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: $NS, name: regrouped}, data: {color: blue}}\n---\n"+propagationOf("v1", "ConfigMap", "regrouped"))
	template := configMap(p.namespace, "regrouped")
	inMember(t, p.env, member1, template, hasColor("blue"))
	p.create(t, "edit", other)
	p.awaitReason(t, template, `OverridePolicy "`+p.namespace+`/regroup"`, "spec.overrideRules[1].overriders.plaintext[0]", `"/apiVersion"`)
	inMember(t, p.env, member1, template, hasColor("blue"))
}

// givesNoRights propagates rights that an administrator gave in the control plane, and
// changes them on the way.
func (p *tenancy) givesNoRights(t *testing.T) {
	const grant = `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: $NS, name: readers}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: reader}]}`
	const widen = `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {namespace: $NS, name: widen}, spec: {resourceSelectors: [{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, name: readers}], overrideRules: [{overriders: {plaintext: [{path: /roleRef/name, operator: replace, value: cluster-admin}]}}]}}`
	for _, object := range p.objects(t, grant) {
		p.env.Create(t, object)
	}
	p.create(t, "edit", widen+"\n---\n"+propagationOf("rbac.authorization.k8s.io/v1", "RoleBinding", "readers"))
	template := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "readers"}}
	p.awaitReason(t, template, `OverridePolicy "`+p.namespace+`/widen"`, `"/roleRef"`, "use a ClusterOverridePolicy")
	if err := absent(t.Context(), member(p.env, member1), template); err != nil {
		t.Errorf("the RoleBinding in the member: %v", err)
	}
}

// forgesNoMarks gives a template, and by an override its manifest, the marks by which
// Karmada knows its own.
func (p *tenancy) forgesNoMarks(t *testing.T) {
	victim := configMap(p.other, "victim")
	p.env.Create(t, victim, policyFor(t, on(member1), victim))
	held := inMember(t, p.env, member1, victim, hasColor("blue"))
	marks := fmt.Sprintf(`{karmada.io/managed: "false", work.karmada.io/permanent-id: %q, resourcebinding.karmada.io/permanent-id: %q}`,
		held.Labels["work.karmada.io/permanent-id"], held.Labels["resourcebinding.karmada.io/permanent-id"])
	places := fmt.Sprintf(`{work.karmada.io/name: %q, work.karmada.io/namespace: karmada-es-member1, resourcetemplate.karmada.io/uid: %q, resourcebinding.karmada.io/namespace: $OTHER, resourcebinding.karmada.io/name: victim-configmap, resourcebinding.karmada.io/dependencies: '[{"apiVersion":"v1","kind":"Secret","namespace":"karmada-cluster","name":"member1"}]', propagationpolicy.karmada.io/namespace: $OTHER, propagationpolicy.karmada.io/name: victim}`,
		held.Annotations["work.karmada.io/name"], held.Annotations["resourcetemplate.karmada.io/uid"])
	// An owner that exists, so that the garbage collector leaves the template alone.
	owner := await(t, p.env.Karmada, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}}, exists)
	p.create(t, "edit", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: $NS, name: forged, labels: `+marks+`, annotations: `+places+`, finalizers: [loot.example.io/stay], ownerReferences: [{apiVersion: v1, kind: Namespace, name: $NS, uid: `+string(owner.UID)+`}]}, data: {color: red}}`+
		"\n---\n"+strings.ReplaceAll(overridePolicy(`labelsOverrider: [{operator: add, value: `+marks+`}], annotationsOverrider: [{operator: add, value: `+places+`}], plaintext: [{path: /metadata/finalizers, operator: add, value: [loot.example.io/stay]}, {path: /metadata/ownerReferences, operator: add, value: [{apiVersion: v1, kind: Namespace, name: x, uid: y}]}]`), "name: loot", "name: forge")+
		"\n---\n"+propagationOf("v1", "ConfigMap", "forged"))
	forged := configMap(p.namespace, "forged")
	t.Cleanup(func() { p.unhold(t, forged) })
	inMember(t, p.env, member1, forged, func(c *corev1.ConfigMap) error {
		return errors.Join(hasColor("red")(c), same("managed", "true", c.Labels["karmada.io/managed"]),
			same("own Work", false, c.Labels["work.karmada.io/permanent-id"] == held.Labels["work.karmada.io/permanent-id"]),
			same("own binding", false, c.Labels["resourcebinding.karmada.io/permanent-id"] == held.Labels["resourcebinding.karmada.io/permanent-id"]),
			same("own template", false, c.Annotations["resourcetemplate.karmada.io/uid"] == held.Annotations["resourcetemplate.karmada.io/uid"]),
			same("namespace of the binding", p.namespace, c.Annotations["resourcebinding.karmada.io/namespace"]),
			same("finalizers", 0, len(c.Finalizers)), same("owners", 0, len(c.OwnerReferences)))
	})
	now := inMember(t, p.env, member1, victim, hasColor("blue"))
	if now.ResourceVersion != held.ResourceVersion {
		t.Error("the object of another tenant was written")
	}
}

// copiesNoID makes a binding with the id of one in another namespace, as a copy with
// labels does, and deletes the Work of that one. The object in the member stays.
func (p *tenancy) copiesNoID(t *testing.T) {
	victim := configMap(p.other, "kept")
	p.env.Create(t, victim, policyFor(t, on(member1), victim))
	held := inMember(t, p.env, member1, victim, hasColor("blue"))
	id := await(t, p.env.Karmada, bindingOf(t, victim), delivered).Labels[workv1alpha2.ResourceBindingPermanentIDLabel]
	p.create(t, "edit", "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: $NS, name: copied}, data: {color: red}}")
	p.create(t, "karmada-binding-edit", `{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {namespace: $NS, name: copied-configmap, labels: {`+
		workv1alpha2.ResourceBindingPermanentIDLabel+`: "`+id+`"}}, spec: {resource: {apiVersion: v1, kind: ConfigMap, namespace: $NS, name: copied}, clusters: [{name: member1}]}}`)
	copied := configMap(p.namespace, "copied")
	inMember(t, p.env, member1, copied, hasColor("red"))
	bound := await(t, p.env.Karmada, bindingOf(t, copied), exists)
	if bound.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] == id {
		t.Error("a new binding keeps the id of another one")
	}
	change := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+workv1alpha2.ResourceBindingPermanentIDLabel+`":"`+id+`"}}}`))
	if err := p.users["karmada-binding-edit"].Patch(t.Context(), bound, change); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "the permanent id is immutable") {
		t.Errorf("the id of a binding is changed: %v", err)
	}
	lost := await(t, p.env.Karmada, workOf(t, member1, victim), exists)
	if err := p.env.Karmada.Delete(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	await(t, p.env.Karmada, workOf(t, member1, victim), func(w *workv1alpha1.Work) error {
		return errors.Join(same("the Work is another one", true, w.UID != lost.UID), same("it stays", true, w.DeletionTimestamp == nil))
	})
	if now := inMember(t, p.env, member1, victim, hasColor("blue")); now.UID != held.UID {
		t.Error("the object of another tenant was deleted and made again")
	}
}

// unhold takes the finalizer off, so that the namespace can go.
func (p *tenancy) unhold(t *testing.T, template *corev1.ConfigMap) {
	free := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	if err := client.IgnoreNotFound(p.env.Karmada.Patch(context.WithoutCancel(t.Context()), template.DeepCopy(), free)); err != nil {
		t.Error(err)
	}
}

// takesNoSecretAlong refers to Secrets by names that lead elsewhere, and to the token of
// a ServiceAccount.
func (p *tenancy) takesNoSecretAlong(t *testing.T) {
	const secrets = `{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: $NS, name: courier}}
---
{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {namespace: $NS, name: courier-token, annotations: {kubernetes.io/service-account.name: courier}}, data: {token: c2VjcmV0}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: $NS, name: courier}, spec: {selector: {matchLabels: {app: courier}}, template: {metadata: {labels: {app: courier}}, spec: {serviceAccountName: courier, containers: [{name: web, image: docker.io/library/nginx}], imagePullSecrets: [{name: karmada-cluster/member2}, {name: ../../karmada-cluster/secrets/member2}], volumes: [{name: a, secret: {secretName: member2}}, {name: b, secret: {secretName: courier-token}}]}}}}
---
`
	p.create(t, "edit", secrets+propagationOf("apps/v1", "Deployment", "courier"))
	inMember(t, p.env, member1, deployment(p.namespace, "courier", 1), exists)
	token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "courier-token"}}
	await(t, p.env.Karmada, workOf(t, member1, token), exists)
	taken := &corev1.SecretList{}
	if err := member(p.env, member1).List(t.Context(), taken); err != nil {
		t.Fatal(err)
	}
	for _, secret := range taken.Items {
		if secret.Namespace == "karmada-cluster" || secret.Namespace == p.namespace && (secret.Name != "courier-token" || len(secret.Data["token"]) > 0) {
			t.Errorf("Secret %s/%s with %d entries is in the member", secret.Namespace, secret.Name, len(secret.Data))
		}
	}
}

// selectsNothingOutside selects by a namespaced policy what has no namespace.
func (p *tenancy) selectsNothingOutside(t *testing.T) {
	p.create(t, "edit", strings.ReplaceAll(propagating(`apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: cluster-admin`, `placement: {}`), "name: loot", "name: outside")+"\n---\n"+
		"{apiVersion: v1, kind: ConfigMap, metadata: {namespace: $NS, name: fence}, data: {color: blue}}\n---\n"+propagationOf("v1", "ConfigMap", "fence"))
	// The policy that came first was looked at first.
	inMember(t, p.env, member1, configMap(p.namespace, "fence"), hasColor("blue"))
	bound := &workv1alpha2.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "cluster-admin-clusterrole"}}
	if err := absent(t.Context(), p.env.Karmada, bound); err != nil {
		t.Errorf("the binding of a ClusterRole: %v", err)
	}
}

// lootNowhere looks for what attacks were after, in every member and in the control plane.
func (p *tenancy) lootNowhere(t *testing.T) {
	t.Helper()
	const controlPlane = "the control plane"
	sides := map[string]client.Client{controlPlane: p.env.Karmada, member1: member(p.env, member1), member2: member(p.env, member2), member3: member(p.env, member3)}
	for side, reader := range sides {
		for _, list := range []client.ObjectList{
			&rbacv1.ClusterRoleBindingList{}, &rbacv1.ClusterRoleList{}, &rbacv1.RoleBindingList{}, &corev1.SecretList{}, &corev1.ConfigMapList{}, &corev1.NamespaceList{},
		} {
			if err := reader.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}
			err := meta.EachListItem(list, func(object runtime.Object) error {
				if found, ok := object.(client.Object); ok && found.GetName() == loot && (found.GetNamespace() != p.other || side != controlPlane) {
					t.Errorf("%T %s/%s is in %s", found, found.GetNamespace(), found.GetName(), side)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}
