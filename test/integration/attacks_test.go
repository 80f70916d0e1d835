package integration

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	agents "karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/registration/bootstraptoken"
	"karmada.io/karmada/internal/testenv"
)

// attack is a request that an agent must not get through with. What has no body is
// sent without one.
type attack struct {
	verb, path, body string
	// as is who the agent says it is, nobody else if it is empty.
	as rest.ImpersonationConfig
}

// Where the API has what the attacks are about.
const (
	core     = "/api/v1"
	clusters = "/apis/cluster.karmada.io/v1alpha1/clusters"
	works    = "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-member1/works"
	leases   = "/apis/coordination.k8s.io/v1/namespaces/"
	rbac     = "/apis/rbac.authorization.k8s.io/v1"
	signing  = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	policies = "/apis/policy.karmada.io/v1alpha1"
)

// attacks are those on other clusters and on the control plane, by the agent of the
// newcomer.
func attacks() map[string]attack {
	everything := `"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]`
	admin := `"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"` + agents.User(newcomer) + `"}]`
	named := func(kind, apiVersion, name, rest string) string {
		return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q}%s}`, apiVersion, kind, name, rest)
	}
	const rbacVersion, policyVersion = "rbac.authorization.k8s.io/v1", "policy.karmada.io/v1alpha1"
	return map[string]attack{
		"read a Work of another cluster":                {verb: "GET", path: works + "/victim"},
		"list the Works of another cluster":             {verb: "GET", path: works},
		"watch the Works of another cluster":            {verb: "GET", path: works + "?watch=true"},
		"list the Works of all clusters":                {verb: "GET", path: "/apis/work.karmada.io/v1alpha1/works"},
		"propagate to another cluster":                  {verb: "POST", path: works, body: named("Work", "work.karmada.io/v1alpha1", "mine", "")},
		"change a Work of another cluster":              {verb: "PATCH", path: works + "/victim", body: `{"spec":{"workload":{"manifests":[]}}}`},
		"report on a Work of another cluster":           {verb: "PATCH", path: works + "/victim/status", body: `{"status":{"conditions":[]}}`},
		"delete a Work of another cluster":              {verb: "DELETE", path: works + "/victim"},
		"delete all Works of another cluster":           {verb: "DELETE", path: works},
		"list bindings":                                 {verb: "GET", path: "/apis/work.karmada.io/v1alpha2/resourcebindings"},
		"read another Cluster":                          {verb: "GET", path: clusters + "/member1"},
		"list all Clusters":                             {verb: "GET", path: clusters},
		"watch all Clusters":                            {verb: "GET", path: clusters + "?watch=true"},
		"watch another Cluster":                         {verb: "GET", path: clusters + "?watch=true&fieldSelector=metadata.name%3Dmember1"},
		"create another Cluster":                        {verb: "POST", path: clusters, body: named("Cluster", "cluster.karmada.io/v1alpha1", "other", `,"spec":{"syncMode":"Pull"}`)},
		"change another Cluster":                        {verb: "PATCH", path: clusters + "/member1", body: `{"spec":{"apiEndpoint":"https://192.0.2.1"}}`},
		"report on another Cluster":                     {verb: "PATCH", path: clusters + "/member1/status", body: `{"status":{"kubernetesVersion":"v0"}}`},
		"delete another Cluster":                        {verb: "DELETE", path: clusters + "/member1"},
		"delete all Clusters":                           {verb: "DELETE", path: clusters},
		"become a push cluster":                         {verb: "PATCH", path: clusters + "/newcomer", body: `{"spec":{"syncMode":"Push"}}`},
		"send the credentials of others to its address": {verb: "PATCH", path: clusters + "/newcomer", body: `{"spec":{"secretRef":{"namespace":"karmada-cluster","name":"member1"}}}`},
		"send a Secret of its name to its address":      {verb: "PATCH", path: clusters + "/newcomer", body: `{"spec":{"secretRef":{"namespace":"default","name":"newcomer"}}}`},
		"impersonate with a Secret of its name":         {verb: "PATCH", path: clusters + "/newcomer", body: `{"spec":{"impersonatorSecretRef":{"namespace":"default","name":"newcomer-impersonator"}}}`},
		"reach another member":                          {verb: "GET", path: clusters + "/member1/proxy/api/v1/secrets"},
		"run a command in another member":               {verb: "POST", path: clusters + "/member1/proxy/api/v1/namespaces/default/pods/web/exec?command=sh"},
		"reach all members":                             {verb: "GET", path: clusters + "/*/proxy/api/v1/secrets"},
		"read the credentials of another cluster":       {verb: "GET", path: core + "/namespaces/karmada-cluster/secrets/member1"},
		"list the credentials of clusters":              {verb: "GET", path: core + "/namespaces/karmada-cluster/secrets"},
		"list all Secrets":                              {verb: "GET", path: core + "/secrets"},
		"change the credentials of another cluster":     {verb: "PATCH", path: core + "/namespaces/karmada-cluster/secrets/member1", body: `{"data":{"token":"bWluZQ=="}}`},
		"delete the credentials of another cluster":     {verb: "DELETE", path: core + "/namespaces/karmada-cluster/secrets/member1"},
		"make a Secret for others":                      {verb: "POST", path: core + "/namespaces/karmada-cluster/secrets", body: named("Secret", "v1", "other", `,"type":"Opaque"`)},
		"make the impersonator of others":               {verb: "POST", path: core + "/namespaces/karmada-cluster/secrets", body: named("Secret", "v1", "other-impersonator", `,"type":"Opaque"`)},
		"make a token of a service account": {
			verb: "POST", path: core + "/namespaces/karmada-cluster/secrets",
			body: `{"apiVersion":"v1","kind":"Secret","type":"kubernetes.io/service-account-token","metadata":{"name":"newcomer-impersonator","annotations":{"kubernetes.io/service-account.name":"default"}}}`,
		},
		"ask for a token of a service account":    {verb: "POST", path: core + "/namespaces/kube-system/serviceaccounts/default/token", body: `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`},
		"read bootstrap tokens":                   {verb: "GET", path: core + "/namespaces/kube-system/secrets"},
		"make a bootstrap token":                  {verb: "POST", path: core + "/namespaces/kube-system/secrets", body: named("Secret", "v1", "bootstrap-token-abcdef", `,"type":"bootstrap.kubernetes.io/token"`)},
		"find out whose token it is":              {verb: "POST", path: "/apis/authentication.k8s.io/v1/tokenreviews", body: `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"x"}}`},
		"list namespaces":                         {verb: "GET", path: core + "/namespaces"},
		"read the namespace of another cluster":   {verb: "GET", path: core + "/namespaces/karmada-es-member1"},
		"create a namespace":                      {verb: "POST", path: core + "/namespaces", body: named("Namespace", "v1", "karmada-es-other", "")},
		"delete its namespace":                    {verb: "DELETE", path: core + "/namespaces/karmada-es-newcomer"},
		"change cluster-info":                     {verb: "PATCH", path: core + "/namespaces/kube-public/configmaps/cluster-info", body: `{"data":{}}`},
		"keep another cluster alive":              {verb: "PATCH", path: leases + "karmada-cluster/leases/member1", body: `{"spec":{"holderIdentity":"me"}}`},
		"make the Lease of another cluster":       {verb: "POST", path: leases + "karmada-cluster/leases", body: named("Lease", "coordination.k8s.io/v1", "member2", "")},
		"take the Lease of a component":           {verb: "POST", path: leases + "karmada-system/leases", body: named("Lease", "coordination.k8s.io/v1", "not-mine", "")},
		"lead in the name of another agent":       {verb: "POST", path: leases + "karmada-system/leases", body: named("Lease", "coordination.k8s.io/v1", "karmada-agent-member1", "")},
		"lead in another namespace":               {verb: "POST", path: leases + "kube-system/leases", body: named("Lease", "coordination.k8s.io/v1", newcomer, "")},
		"delete a Lease":                          {verb: "DELETE", path: leases + "karmada-cluster/leases/member1"},
		"make a role":                             {verb: "POST", path: rbac + "/clusterroles", body: named("ClusterRole", rbacVersion, "mine", ","+everything)},
		"make a role in its namespace":            {verb: "POST", path: rbac + "/namespaces/karmada-es-newcomer/roles", body: named("Role", rbacVersion, "mine", ","+everything)},
		"bind itself to everything":               {verb: "POST", path: rbac + "/clusterrolebindings", body: named("ClusterRoleBinding", rbacVersion, "mine", ","+admin)},
		"bind itself to everything in a place":    {verb: "POST", path: rbac + "/namespaces/karmada-es-newcomer/rolebindings", body: named("RoleBinding", rbacVersion, "mine", ","+admin)},
		"widen its own role":                      {verb: "PATCH", path: rbac + "/clusterroles/system:karmada:newcomer:agent", body: "{" + everything + "}"},
		"widen its own role for Secrets":          {verb: "PATCH", path: rbac + "/namespaces/karmada-cluster/roles/system:karmada:newcomer:agent-secret", body: "{" + everything + "}"},
		"delete the rights of another agent":      {verb: "DELETE", path: rbac + "/clusterroles/system:karmada:member1:agent"},
		"delete the rights of a component":        {verb: "DELETE", path: rbac + "/clusterroles/system:karmada:agent-rbac-generator"},
		"be an administrator":                     {verb: "GET", path: clusters, as: rest.ImpersonationConfig{UserName: "system:admin", Groups: []string{"system:masters"}}},
		"be another agent":                        {verb: "GET", path: works, as: rest.ImpersonationConfig{UserName: agents.User(member1), Groups: []string{agents.Group}}},
		"be the one who makes roles of agents":    {verb: "GET", path: clusters + "/member1", as: rest.ImpersonationConfig{UserName: agents.Generator}},
		"be itself with more groups":              {verb: "GET", path: clusters, as: rest.ImpersonationConfig{UserName: agents.User(newcomer), Groups: []string{"system:masters"}}},
		"list requests for certificates":          {verb: "GET", path: signing},
		"delete a request for a certificate":      {verb: "DELETE", path: signing + "/any"},
		"approve a certificate":                   {verb: "PUT", path: signing + "/any/approval", body: named("CertificateSigningRequest", "certificates.k8s.io/v1", "any", "")},
		"issue a certificate":                     {verb: "PUT", path: signing + "/any/status", body: named("CertificateSigningRequest", "certificates.k8s.io/v1", "any", "")},
		"propagate everything of everybody":       {verb: "POST", path: policies + "/clusterpropagationpolicies", body: named("ClusterPropagationPolicy", policyVersion, "mine", "")},
		"override what others get":                {verb: "POST", path: policies + "/namespaces/default/overridepolicies", body: named("OverridePolicy", policyVersion, "mine", "")},
		"see what the interpreter is asked":       {verb: "POST", path: "/apis/config.karmada.io/v1alpha1/resourceinterpreterwebhookconfigurations", body: named("ResourceInterpreterWebhookConfiguration", "config.karmada.io/v1alpha1", "mine", "")},
		"see what is admitted":                    {verb: "POST", path: "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", body: named("MutatingWebhookConfiguration", "admissionregistration.k8s.io/v1", "mine", "")},
		"lift the policies that bound agents":     {verb: "DELETE", path: "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/karmada-agent"},
		"serve an API in the place of the server": {verb: "PATCH", path: "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.cluster.karmada.io", body: `{"spec":{"insecureSkipTLSVerify":true}}`},
		"read metrics":                            {verb: "GET", path: "/metrics"},
	}
}

// try sends the request and returns what the API server says.
func (a attack) try(ctx context.Context, as *rest.Config) error {
	config := rest.CopyConfig(as)
	config.Impersonate = a.as
	karmada, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	request := karmada.RESTClient().Verb(a.verb).RequestURI(a.path).SetHeader("Content-Type", "application/json")
	if a.verb == "PATCH" {
		request = request.SetHeader("Content-Type", string(types.MergePatchType))
	}
	if a.body != "" {
		request = request.Body([]byte(a.body))
	}
	return request.Do(ctx).Error()
}

// victims are what the attacks are about that is not there by itself.
func victims() []client.Object {
	token := map[string][]byte{"token": []byte("secret")}
	return []client.Object{
		&workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: agents.ExecutionNamespace(member1), Name: "victim"}},
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: member1}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: newcomer}, Data: token},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: newcomer + "-impersonator"}, Data: token},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: agents.RoleName(member1)}},
	}
}

// agentMayNot attacks with the certificate of the agent of the newcomer, whose
// Cluster is there.
func agentMayNot(t *testing.T, config *rest.Config) {
	for _, victim := range victims() {
		cleanUp(t, victim)
		if err := env.Karmada.Create(t.Context(), victim); err != nil {
			t.Fatal(err)
		}
	}
	secret := await(t, env.Karmada, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: member1}}, exists)
	own := await(t, env.Karmada, clusterNamed(newcomer), exists)
	for what, attack := range attacks() {
		t.Run(what, func(t *testing.T) {
			err := attack.try(t.Context(), config)
			if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
				t.Errorf("the answer is %v", err)
			}
		})
	}
	t.Run("a report changes nothing but the status", func(t *testing.T) {
		report := attack{verb: "PATCH", path: clusters + "/newcomer/status", body: `{"metadata":{"labels":{"mine":"yes"}},"spec":{"syncMode":"Push","secretRef":{"namespace":"karmada-cluster","name":"member1"}}}`}
		if err := report.try(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		now := await(t, env.Karmada, clusterNamed(newcomer), exists)
		if err := same("spec and labels", []any{own.Spec, own.Labels}, []any{now.Spec, now.Labels}); err != nil {
			t.Error(err)
		}
	})
	t.Run("nothing of others was changed", func(t *testing.T) {
		now := await(t, env.Karmada, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name}}, exists)
		if !bytes.Equal(now.Data[clusterv1alpha1.SecretTokenKey], secret.Data[clusterv1alpha1.SecretTokenKey]) {
			t.Error("the credentials of another cluster were changed")
		}
		for _, victim := range append(victims(), clusterNamed(member1), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: agents.ExecutionNamespace(newcomer)}}) {
			found := await(t, env.Karmada, victim, exists)
			if found.GetDeletionTimestamp() != nil {
				t.Errorf("%T %s is being deleted", found, found.GetName())
			}
		}
	})
}

// TestATokenIsGoodForNothingElse tries what the holder of a bootstrap token could
// want beside registering.
func TestATokenIsGoodForNothingElse(t *testing.T) {
	config := holding(newToken(t, bootstraptoken.Token{}))
	testenv.Eventually(t, "the token is accepted", func(ctx context.Context) error {
		return attack{verb: "GET", path: signing}.try(ctx, config)
	})
	for what, attack := range attacks() {
		if attack.path == signing && attack.verb == "GET" {
			continue // Whoever asks for a certificate looks for it.
		}
		t.Run(what, func(t *testing.T) {
			if err := attack.try(t.Context(), config); !apierrors.IsForbidden(err) {
				t.Errorf("the answer is %v", err)
			}
		})
	}
}
