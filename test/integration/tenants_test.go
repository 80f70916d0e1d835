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

// attackTarget is the name of the objects that attacks try to create or change in a member.
const attackTarget = "loot"

// tenantFixture is a namespace with users who have one role each in it, and no other
// permissions.
type tenantFixture struct {
	env                       *testenv.Env
	namespace, otherNamespace string
	users                     map[string]client.Client
}

// tenantRoles are the ClusterRoles of the users in the namespace. An administrator grants the
// last one explicitly; the others are those of Kubernetes.
var tenantRoles = []string{"view", "edit", "admin", "karmada-binding-edit"}

func newTenantFixture(t *testing.T, env *testenv.Env) *tenantFixture {
	t.Helper()
	fixture := &tenantFixture{env: env, namespace: env.Namespace(t), otherNamespace: env.Namespace(t), users: map[string]client.Client{}}
	for _, role := range tenantRoles {
		user := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: fixture.namespace + "-" + role}
		env.Create(t, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: fixture.namespace, Name: role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}, Subjects: []rbacv1.Subject{user},
		})
		config := rest.CopyConfig(env.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: user.Name, Groups: []string{"system:authenticated"}}
		as, err := client.New(config, client.Options{Scheme: env.Karmada.Scheme()})
		if err != nil {
			t.Fatal(err)
		}
		fixture.users[role] = as
	}
	testenv.Eventually(t, "the ClusterRole view includes the rules of Karmada", func(ctx context.Context) error {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("work.karmada.io/v1alpha2")
		list.SetKind("ResourceBindingList")
		return fixture.users["view"].List(ctx, list, client.InNamespace(fixture.namespace))
	})
	return fixture
}

// parseObjects parses YAML documents and replaces $NS and $OTHER by the namespaces.
func (p *tenantFixture) parseObjects(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for document := range strings.SplitSeq(strings.NewReplacer("$NS", p.namespace, "$OTHER", p.otherNamespace).Replace(text), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatalf("%v in %s", err, document)
		}
		all = append(all, object)
	}
	return all
}

func (p *tenantFixture) createAs(t *testing.T, role, text string) {
	t.Helper()
	for _, object := range p.parseObjects(t, text) {
		if err := p.users[role].Create(t.Context(), object); err != nil {
			t.Fatalf("%s creates %s %s: %v", role, object.GetKind(), object.GetName(), err)
		}
	}
}

// tenantAttack is a request that the API server must reject with this message.
type tenantAttack struct{ role, object, message string }

func overridePolicyYAML(overriders string) string {
	return `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {namespace: $NS, name: loot}, spec: {overrideRules: [{overriders: {` + overriders + `}}]}}`
}

func bindingYAML(apiVersion, reference string) string {
	return `{apiVersion: ` + apiVersion + `, kind: ResourceBinding, metadata: {namespace: $NS, name: loot}, spec: {resource: {` + reference + `}, clusters: [{name: member1}]}}`
}

func propagationPolicyYAML(selector, rest string) string {
	return `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {namespace: $NS, name: loot}, spec: {resourceSelectors: [{` + selector + `}], ` + rest + `}}`
}

// rejectedAttacks returns the attacks that the API server must reject.
func rejectedAttacks() map[string]tenantAttack {
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
		"replace the whole manifest":                          {"edit", overridePolicyYAML(`plaintext: [{path: "", operator: replace, value: ` + clusterAdmin + `}]`), identity + "the whole manifest"},
		"replace the whole manifest with deprecated fields":   {"edit", `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {namespace: $NS, name: loot}, spec: {overriders: {plaintext: [{path: "", operator: add, value: ` + clusterAdmin + `}]}}}`, identity + "the whole manifest"},
		"change the kind":                                     {"edit", overridePolicyYAML(`plaintext: [{path: /kind, operator: replace, value: Secret}]`), identity + "the kind"},
		"change the namespace":                                {"edit", overridePolicyYAML(`plaintext: [{path: /metadata/namespace, operator: replace, value: kube-system}]`), identity + "the namespace"},
		"remove the namespace":                                {"edit", overridePolicyYAML(`plaintext: [{path: /metadata/namespace, operator: remove}]`), identity + "the namespace"},
		"change the name":                                     {"edit", overridePolicyYAML(`plaintext: [{path: /metadata/name, operator: replace, value: loot}]`), identity + "the name"},
		"replace the metadata":                                {"edit", overridePolicyYAML(`plaintext: [{path: /metadata, operator: replace, value: {name: loot, namespace: kube-system}}]`), identity + "the namespace"},
		"use the name as an image":                            {"edit", overridePolicyYAML(`imageOverrider: [{component: Repository, operator: replace, value: loot, predicate: {path: /metadata/name}}]`), identity + "the name"},
		"use the namespace as a document":                     {"admin", overridePolicyYAML(`fieldOverrider: [{fieldPath: /metadata/namespace, yaml: [{subPath: "", operator: replace, value: kube-system}]}]`), identity + "the namespace"},
		"override in another namespace":                       {"edit", `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {namespace: $NS, name: loot}, spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap, namespace: $OTHER}]}}`, "must be the namespace of the policy"},
		"store an override in another namespace":              {"edit", `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {namespace: $OTHER, name: loot}, spec: {}}`, forbidden},
		"propagate from another namespace":                    {"edit", propagationPolicyYAML(`apiVersion: v1, kind: Secret, namespace: karmada-cluster`, ""), "must be the namespace of the policy"},
		"preempt a template of another namespace":             {"edit", propagationPolicyYAML(`apiVersion: v1, kind: ConfigMap, namespace: $OTHER, name: loot`, "preemption: Always, priority: 100"), "must be the namespace of the policy"},
		"create a ClusterPropagationPolicy":                   {"edit", cluster("ClusterPropagationPolicy", `resourceSelectors: [{apiVersion: v1, kind: Secret}]`), forbidden},
		"create a ClusterOverridePolicy":                      {"admin", cluster("ClusterOverridePolicy", ""), forbidden},
		"propagate with the role view":                        {"view", propagationPolicyYAML(`apiVersion: v1, kind: ConfigMap`, ""), forbidden},
		"override with the role view":                         {"view", overridePolicyYAML(`plaintext: [{path: /data, operator: remove}]`), forbidden},
		"create a binding":                                    {"edit", bindingYAML(v1alpha2, `apiVersion: v1, kind: ConfigMap, namespace: $NS, name: loot`), forbidden},
		"create a binding with the role admin":                {"admin", bindingYAML(v1alpha1, `apiVersion: v1, kind: ConfigMap, namespace: $NS, name: loot`), forbidden},
		"create a ClusterResourceBinding":                     {"admin", `{apiVersion: work.karmada.io/v1alpha2, kind: ClusterResourceBinding, metadata: {name: loot}, spec: {resource: {apiVersion: v1, kind: Namespace, name: $NS}}}`, forbidden},
		"create a Work in the namespace of the tenant":        {"edit", `{apiVersion: work.karmada.io/v1alpha1, kind: Work, metadata: {namespace: $NS, name: loot}, spec: {}}`, forbidden},
		"create a Work in an execution namespace":             {"admin", `{apiVersion: work.karmada.io/v1alpha1, kind: Work, metadata: {namespace: karmada-es-member1, name: loot}, spec: {}}`, forbidden},
		"grant oneself karmada-binding-edit":                  {"admin", `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: $NS, name: loot}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: karmada-binding-edit}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: mallory}]}`, forbidden},
		"register a cluster":                                  {"admin", `{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: loot}, spec: {syncMode: Push, apiEndpoint: "https://192.0.2.1", secretRef: {namespace: $NS, name: loot}}}`, forbidden},
		"create a WorkloadRebalancer":                         {"admin", `{apiVersion: apps.karmada.io/v1alpha1, kind: WorkloadRebalancer, metadata: {name: loot}, spec: {workloads: [{apiVersion: apps/v1, kind: Deployment, namespace: $OTHER, name: web}]}}`, forbidden},
		"bind a Secret with cluster credentials":              {"karmada-binding-edit", bindingYAML(v1alpha2, `apiVersion: v1, kind: Secret, namespace: karmada-cluster, name: member2`), "must not refer to"},
		"bind a Secret with cluster credentials, in v1alpha1": {"karmada-binding-edit", bindingYAML(v1alpha1, `apiVersion: v1, kind: Secret, namespace: karmada-cluster, name: member2`), "must not refer to"},
		"bind an object of another namespace":                 {"karmada-binding-edit", bindingYAML(v1alpha2, `apiVersion: v1, kind: ConfigMap, namespace: $OTHER, name: loot`), "must not refer to"},
		"bind a cluster-scoped object":                        {"karmada-binding-edit", bindingYAML(v1alpha2, `apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: cluster-admin`), "must not refer to"},
		"bind a kind that is never propagated":                {"karmada-binding-edit", bindingYAML(v1alpha2, `apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, namespace: $NS, name: loot`), "is never propagated"},
		"bind a binding":                                      {"karmada-binding-edit", bindingYAML(v1alpha2, `apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, namespace: $NS, name: loot`), "is never propagated"},
		"create a binding in another namespace":               {"karmada-binding-edit", `{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {namespace: $OTHER, name: loot}, spec: {resource: ` + own + `}}`, forbidden},
	}
}

// TestTenantIsolation sends attacks as users who have a role in one namespace. Attacks that are
// not rejected must have no effect on other objects in the members and in the control plane.
func TestTenantIsolation(t *testing.T) {
	env := shared(t)
	fixture := newTenantFixture(t, env)
	env.Create(t, configMap(fixture.otherNamespace, attackTarget))
	for what, attack := range rejectedAttacks() {
		t.Run(what, func(t *testing.T) {
			object := fixture.parseObjects(t, attack.object)[0]
			err := fixture.users[attack.role].Create(t.Context(), object)
			if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), attack.message) {
				t.Errorf("got %v, want a rejection with %q", err, attack.message)
			}
		})
	}
	t.Run("bindings are read-only", fixture.testBindingIsReadOnly)
	t.Run("an override of the API group", fixture.testOverrideOfAPIGroup)
	t.Run("an override of the roleRef", fixture.testOverrideOfRoleRef)
	t.Run("forged labels and annotations", fixture.testForgedLabels)
	t.Run("the permanent ID of another binding", fixture.testCopiedPermanentID)
	t.Run("a Secret of another namespace as a dependency", fixture.testSecretDependencies)
	t.Run("a cluster-scoped kind", fixture.testClusterScopedSelector)
	fixture.checkAttackTargetAbsent(t)
}

// objectPropagationYAML returns a policy that propagates one object with its dependencies to a
// member and takes over existing objects.
func objectPropagationYAML(apiVersion, kind, name string) string {
	return strings.NewReplacer("$VERSION", apiVersion, "$KIND", kind, "$NAME", name).Replace(
		`{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {namespace: $NS, name: $NAME}, spec: {propagateDeps: true, conflictResolution: Overwrite, resourceSelectors: [{apiVersion: $VERSION, kind: $KIND, name: $NAME}], placement: {clusterAffinity: {clusterNames: [member1]}}}}`)
}

func (p *tenantFixture) testBindingIsReadOnly(t *testing.T) {
	p.createAs(t, "edit", "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: $NS, name: plain}, data: {color: blue}}\n---\n"+objectPropagationYAML("v1", "ConfigMap", "plain"))
	template := configMap(p.namespace, "plain")
	awaitInMember(t, p.env, member1, template, hasColor("blue"))
	rb := await(t, p.env.Karmada, bindingOf(t, template), isDelivered)
	for _, role := range []string{"view", "edit", "admin"} {
		as := p.users[role]
		change := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"clusters":[{"name":"member2"}]}}`))
		report := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"aggregatedStatus":[]}}`))
		for what, err := range map[string]error{
			"change": as.Patch(t.Context(), rb.DeepCopy(), change),
			"report": as.Status().Patch(t.Context(), rb.DeepCopy(), report),
			"delete": as.Delete(t.Context(), rb.DeepCopy()),
			"read":   as.Get(t.Context(), client.ObjectKeyFromObject(rb), rb.DeepCopy()),
		} {
			if apierrors.IsForbidden(err) != (what != "read") {
				t.Errorf("%s tries to %s a binding: %v", role, what, err)
			}
		}
		if err := as.List(t.Context(), &corev1.SecretList{}, client.InNamespace("karmada-cluster")); !apierrors.IsForbidden(err) {
			t.Errorf("%s reads the credentials of clusters: %v", role, err)
		}
	}
	redirected := rb.DeepCopy()
	redirected.Spec.Resource.Namespace = p.otherNamespace
	if err := p.users["karmada-binding-edit"].Update(t.Context(), redirected); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "must not refer to") {
		t.Errorf("updating a binding to refer to another namespace: %v", err)
	}
}

// awaitNotAppliedMessage waits until a binding is not fully applied, with a message that
// contains all texts.
func (p *tenantFixture) awaitNotAppliedMessage(t *testing.T, template client.Object, texts ...string) {
	t.Helper()
	await(t, p.env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		found := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.FullyApplied)
		if found == nil || found.Status != metav1.ConditionFalse {
			return fmt.Errorf("the condition is %v", found)
		}
		for _, text := range texts {
			if !strings.Contains(found.Message, text) {
				return fmt.Errorf("the message is %q, want %q in it", found.Message, text)
			}
		}
		return nil
	})
}

func (p *tenantFixture) testOverrideOfAPIGroup(t *testing.T) {
	const other = `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {namespace: $NS, name: regroup}, spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: regrouped}], overrideRules: [{overriders: {plaintext: [{path: /data/color, operator: replace, value: red}]}}, {overriders: {plaintext: [{path: /apiVersion, operator: replace, value: rbac.authorization.k8s.io/v1}]}}]}}`
	p.createAs(t, "edit", "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: $NS, name: regrouped}, data: {color: blue}}\n---\n"+objectPropagationYAML("v1", "ConfigMap", "regrouped"))
	template := configMap(p.namespace, "regrouped")
	awaitInMember(t, p.env, member1, template, hasColor("blue"))
	p.createAs(t, "edit", other)
	p.awaitNotAppliedMessage(t, template, `OverridePolicy "`+p.namespace+`/regroup"`, "spec.overrideRules[1].overriders.plaintext[0]", `"/apiVersion"`)
	awaitInMember(t, p.env, member1, template, hasColor("blue"))
}

// testOverrideOfRoleRef propagates a RoleBinding that an administrator created in the control
// plane, and changes its roleRef by an override.
func (p *tenantFixture) testOverrideOfRoleRef(t *testing.T) {
	const grant = `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: $NS, name: readers}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: reader}]}`
	const widen = `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {namespace: $NS, name: widen}, spec: {resourceSelectors: [{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, name: readers}], overrideRules: [{overriders: {plaintext: [{path: /roleRef/name, operator: replace, value: cluster-admin}]}}]}}`
	for _, object := range p.parseObjects(t, grant) {
		p.env.Create(t, object)
	}
	p.createAs(t, "edit", widen+"\n---\n"+objectPropagationYAML("rbac.authorization.k8s.io/v1", "RoleBinding", "readers"))
	template := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "readers"}}
	p.awaitNotAppliedMessage(t, template, `OverridePolicy "`+p.namespace+`/widen"`, `"/roleRef"`, "use a ClusterOverridePolicy")
	if err := checkAbsent(t.Context(), memberClient(p.env, member1), template); err != nil {
		t.Errorf("the RoleBinding in the member: %v", err)
	}
}

// testForgedLabels adds the labels and annotations of managed objects to a template. It also adds
// them to the manifest of the template by an override.
func (p *tenantFixture) testForgedLabels(t *testing.T) {
	victim := configMap(p.otherNamespace, "victim")
	p.env.Create(t, victim, policyFor(t, placementOn(member1), victim))
	before := awaitInMember(t, p.env, member1, victim, hasColor("blue"))
	labels := fmt.Sprintf(`{karmada.io/managed: "false", work.karmada.io/permanent-id: %q, resourcebinding.karmada.io/permanent-id: %q}`,
		before.Labels["work.karmada.io/permanent-id"], before.Labels["resourcebinding.karmada.io/permanent-id"])
	annotations := fmt.Sprintf(`{work.karmada.io/name: %q, work.karmada.io/namespace: karmada-es-member1, resourcetemplate.karmada.io/uid: %q, resourcebinding.karmada.io/namespace: $OTHER, resourcebinding.karmada.io/name: victim-configmap, resourcebinding.karmada.io/dependencies: '[{"apiVersion":"v1","kind":"Secret","namespace":"karmada-cluster","name":"member1"}]', propagationpolicy.karmada.io/namespace: $OTHER, propagationpolicy.karmada.io/name: victim}`,
		before.Annotations["work.karmada.io/name"], before.Annotations["resourcetemplate.karmada.io/uid"])
	// The owner exists, so the garbage collector keeps the template.
	owner := await(t, p.env.Karmada, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}}, exists)
	p.createAs(t, "edit", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: $NS, name: forged, labels: `+labels+`, annotations: `+annotations+`, finalizers: [loot.example.io/stay], ownerReferences: [{apiVersion: v1, kind: Namespace, name: $NS, uid: `+string(owner.UID)+`}]}, data: {color: red}}`+
		"\n---\n"+strings.ReplaceAll(overridePolicyYAML(`labelsOverrider: [{operator: add, value: `+labels+`}], annotationsOverrider: [{operator: add, value: `+annotations+`}], plaintext: [{path: /metadata/finalizers, operator: add, value: [loot.example.io/stay]}, {path: /metadata/ownerReferences, operator: add, value: [{apiVersion: v1, kind: Namespace, name: x, uid: y}]}]`), "name: loot", "name: forge")+
		"\n---\n"+objectPropagationYAML("v1", "ConfigMap", "forged"))
	forged := configMap(p.namespace, "forged")
	t.Cleanup(func() { p.removeFinalizers(t, forged) })
	awaitInMember(t, p.env, member1, forged, func(c *corev1.ConfigMap) error {
		return errors.Join(hasColor("red")(c), checkEqual("managed", "true", c.Labels["karmada.io/managed"]),
			checkEqual("label of the other Work", false, c.Labels["work.karmada.io/permanent-id"] == before.Labels["work.karmada.io/permanent-id"]),
			checkEqual("label of the other binding", false, c.Labels["resourcebinding.karmada.io/permanent-id"] == before.Labels["resourcebinding.karmada.io/permanent-id"]),
			checkEqual("annotation of the other template", false, c.Annotations["resourcetemplate.karmada.io/uid"] == before.Annotations["resourcetemplate.karmada.io/uid"]),
			checkEqual("namespace of the binding", p.namespace, c.Annotations["resourcebinding.karmada.io/namespace"]),
			checkEqual("finalizers", 0, len(c.Finalizers)), checkEqual("owners", 0, len(c.OwnerReferences)))
	})
	after := awaitInMember(t, p.env, member1, victim, hasColor("blue"))
	if after.ResourceVersion != before.ResourceVersion {
		t.Error("the object of another tenant was written")
	}
}

// testCopiedPermanentID creates a binding with the permanent ID of a binding in another namespace,
// as when a user copies labels, and deletes the Work of the binding in the other namespace. The
// member object of this Work must stay.
func (p *tenantFixture) testCopiedPermanentID(t *testing.T) {
	victim := configMap(p.otherNamespace, "kept")
	p.env.Create(t, victim, policyFor(t, placementOn(member1), victim))
	before := awaitInMember(t, p.env, member1, victim, hasColor("blue"))
	id := await(t, p.env.Karmada, bindingOf(t, victim), isDelivered).Labels[workv1alpha2.ResourceBindingPermanentIDLabel]
	p.createAs(t, "edit", "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: $NS, name: copied}, data: {color: red}}")
	p.createAs(t, "karmada-binding-edit", `{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {namespace: $NS, name: copied-configmap, labels: {`+
		workv1alpha2.ResourceBindingPermanentIDLabel+`: "`+id+`"}}, spec: {resource: {apiVersion: v1, kind: ConfigMap, namespace: $NS, name: copied}, clusters: [{name: member1}]}}`)
	copied := configMap(p.namespace, "copied")
	awaitInMember(t, p.env, member1, copied, hasColor("red"))
	rb := await(t, p.env.Karmada, bindingOf(t, copied), exists)
	if rb.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] == id {
		t.Error("the new binding has the permanent ID of another binding")
	}
	change := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+workv1alpha2.ResourceBindingPermanentIDLabel+`":"`+id+`"}}}`))
	if err := p.users["karmada-binding-edit"].Patch(t.Context(), rb, change); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "the permanent id is immutable") {
		t.Errorf("changing the permanent ID of a binding: %v", err)
	}
	deletedWork := await(t, p.env.Karmada, workOf(t, member1, victim), exists)
	if err := p.env.Karmada.Delete(t.Context(), deletedWork); err != nil {
		t.Fatal(err)
	}
	await(t, p.env.Karmada, workOf(t, member1, victim), func(w *workv1alpha1.Work) error {
		return errors.Join(checkEqual("the Work is recreated", true, w.UID != deletedWork.UID), checkEqual("the Work is not being deleted", true, w.DeletionTimestamp == nil))
	})
	if after := awaitInMember(t, p.env, member1, victim, hasColor("blue")); after.UID != before.UID {
		t.Error("the object of another tenant was recreated")
	}
}

// removeFinalizers removes the finalizers, so that the namespace can be deleted.
func (p *tenantFixture) removeFinalizers(t *testing.T, template *corev1.ConfigMap) {
	free := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	if err := client.IgnoreNotFound(p.env.Karmada.Patch(context.WithoutCancel(t.Context()), template.DeepCopy(), free)); err != nil {
		t.Error(err)
	}
}

// testSecretDependencies refers to Secrets by names that contain other namespaces, and to the token
// of a ServiceAccount.
func (p *tenantFixture) testSecretDependencies(t *testing.T) {
	const secrets = `{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: $NS, name: courier}}
---
{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {namespace: $NS, name: courier-token, annotations: {kubernetes.io/service-account.name: courier}}, data: {token: c2VjcmV0}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: $NS, name: courier}, spec: {selector: {matchLabels: {app: courier}}, template: {metadata: {labels: {app: courier}}, spec: {serviceAccountName: courier, containers: [{name: web, image: docker.io/library/nginx}], imagePullSecrets: [{name: karmada-cluster/member2}, {name: ../../karmada-cluster/secrets/member2}], volumes: [{name: a, secret: {secretName: member2}}, {name: b, secret: {secretName: courier-token}}]}}}}
---
`
	p.createAs(t, "edit", secrets+objectPropagationYAML("apps/v1", "Deployment", "courier"))
	awaitInMember(t, p.env, member1, deployment(p.namespace, "courier", 1), exists)
	token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "courier-token"}}
	await(t, p.env.Karmada, workOf(t, member1, token), exists)
	secretList := &corev1.SecretList{}
	if err := memberClient(p.env, member1).List(t.Context(), secretList); err != nil {
		t.Fatal(err)
	}
	for _, secret := range secretList.Items {
		if secret.Namespace == "karmada-cluster" || secret.Namespace == p.namespace && (secret.Name != "courier-token" || len(secret.Data["token"]) > 0) {
			t.Errorf("Secret %s/%s with %d entries is in the member", secret.Namespace, secret.Name, len(secret.Data))
		}
	}
}

// testClusterScopedSelector selects a cluster-scoped object by a namespaced policy.
func (p *tenantFixture) testClusterScopedSelector(t *testing.T) {
	p.createAs(t, "edit", strings.ReplaceAll(propagationPolicyYAML(`apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: cluster-admin`, `placement: {}`), "name: loot", "name: outside")+"\n---\n"+
		"{apiVersion: v1, kind: ConfigMap, metadata: {namespace: $NS, name: fence}, data: {color: blue}}\n---\n"+objectPropagationYAML("v1", "ConfigMap", "fence"))
	// The policy for the ClusterRole was created before the policy for the ConfigMap, so it was
	// reconciled before.
	awaitInMember(t, p.env, member1, configMap(p.namespace, "fence"), hasColor("blue"))
	rb := &workv1alpha2.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "cluster-admin-clusterrole"}}
	if err := checkAbsent(t.Context(), p.env.Karmada, rb); err != nil {
		t.Errorf("the binding of a ClusterRole: %v", err)
	}
}

// checkAttackTargetAbsent checks that neither the members nor the control plane have an object
// that the attacks try to create.
func (p *tenantFixture) checkAttackTargetAbsent(t *testing.T) {
	t.Helper()
	const controlPlane = "the control plane"
	clusterClients := map[string]client.Client{controlPlane: p.env.Karmada, member1: memberClient(p.env, member1), member2: memberClient(p.env, member2), member3: memberClient(p.env, member3)}
	for clusterClient, reader := range clusterClients {
		for _, list := range []client.ObjectList{
			&rbacv1.ClusterRoleBindingList{}, &rbacv1.ClusterRoleList{}, &rbacv1.RoleBindingList{}, &corev1.SecretList{}, &corev1.ConfigMapList{}, &corev1.NamespaceList{},
		} {
			if err := reader.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}
			err := meta.EachListItem(list, func(object runtime.Object) error {
				if found, ok := object.(client.Object); ok && found.GetName() == attackTarget && (found.GetNamespace() != p.otherNamespace || clusterClient != controlPlane) {
					t.Errorf("%T %s/%s is in %s", found, found.GetNamespace(), found.GetName(), clusterClient)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}
