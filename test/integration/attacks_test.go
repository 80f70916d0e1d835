package integration

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"strings"
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
	ownWorks = "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-newcomer/works"
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
	event := func(namespace, kind, name, message string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Event","metadata":{"name":"e","namespace":%[1]q},"involvedObject":{"kind":%[2]q,"namespace":%[4]q,"name":%[3]q},"reason":"r","message":%[5]q,"type":"Normal"}`,
			namespace, kind, name, map[bool]string{true: "", false: namespace}[namespace == "default"], message)
	}
	with := func(body, metadata string) string {
		return strings.Replace(body, `"metadata":{`, `"metadata":{`+metadata+`,`, 1)
	}
	const keeps, owns = `"finalizers":["mine.example.com/x"]`, `"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"x","uid":"x"}]`
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
		"choose what it gets by labels":                 {verb: "PATCH", path: clusters + "/newcomer", body: `{"metadata":{"labels":{"tier":"gold"}}}`},
		"give orders by annotations":                    {verb: "PATCH", path: clusters + "/newcomer", body: `{"metadata":{"annotations":{"cluster.karmada.io/declared-dead":"true"}}}`},
		"drop its finalizer":                            {verb: "PATCH", path: clusters + "/newcomer", body: `{"metadata":{"finalizers":[]}}`},
		"drop a taint, or set one":                      {verb: "PATCH", path: clusters + "/newcomer", body: `{"spec":{"taints":[{"key":"a","effect":"NoSchedule"}]}}`},
		"move to another region":                        {verb: "PATCH", path: clusters + "/newcomer", body: `{"spec":{"region":"mars","zones":["a"],"provider":"x"}}`},
		"be another cluster":                            {verb: "PATCH", path: clusters + "/newcomer", body: `{"spec":{"id":"11111111-2222-3333-4444-555555555555"}}`},
		"change how its nodes are graded":               {verb: "PATCH", path: clusters + "/newcomer", body: `{"spec":{"resourceModels":null}}`},
		"leave its rights behind":                       {verb: "DELETE", path: clusters + "/newcomer", body: `{"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Orphan"}`},
		"report nodes that fill the memory":             {verb: "PATCH", path: clusters + "/newcomer/status", body: `{"status":{"resourceSummary":{"allocatableModelings":[{"grade":8,"count":2147483647}]}}}`},
		"report less than nothing":                      {verb: "PATCH", path: clusters + "/newcomer/status", body: `{"status":{"resourceSummary":{"allocated":{"cpu":"-1000"}}}}`},
		"report in the name of the control plane":       {verb: "PATCH", path: clusters + "/newcomer/status", body: `{"status":{"remedyActions":["TrafficControl"]}}`},
		"propagate to itself":                           {verb: "POST", path: ownWorks, body: named("Work", "work.karmada.io/v1alpha1", "mine", `,"spec":{"workload":{"manifests":[]}}`)},
		"change what is wanted of it":                   {verb: "PATCH", path: ownWorks + "/own", body: `{"spec":{"suspendDispatching":true}}`},
		"hide a Work by its labels":                     {verb: "PATCH", path: ownWorks + "/own", body: `{"metadata":{"labels":{"mine":"yes"}}}`},
		"confirm a deletion":                            {verb: "PATCH", path: ownWorks + "/own", body: `{"metadata":{"annotations":{"work.karmada.io/x":"yes"}}}`},
		"keep a Work":                                   {verb: "PATCH", path: ownWorks + "/own", body: `{"metadata":{"finalizers":["karmada.io/execution-controller","mine.example.com/x"]}}`},
		"take the finalizer of others off a Work":       {verb: "PATCH", path: ownWorks + "/own", body: `{"metadata":{"finalizers":[]}}`},
		"own a Work":                                    {verb: "PATCH", path: ownWorks + "/own", body: `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"x","uid":"x"}]}}`},
		"write an Event in another namespace":           {verb: "POST", path: core + "/namespaces/karmada-es-member1/events", body: event("karmada-es-member1", "Work", "victim", "")},
		"write an Event about another Cluster":          {verb: "POST", path: core + "/namespaces/default/events", body: event("default", "Cluster", "member1", "")},
		"write an Event by the newer API":               {verb: "POST", path: "/apis/events.k8s.io/v1/namespaces/default/events", body: `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"e","namespace":"default"},"eventTime":"2026-01-01T00:00:00.000000Z","action":"a","reason":"r","type":"Normal","reportingController":"a/b","reportingInstance":"c","regarding":{"kind":"Cluster","name":"member1"}}`},
		"write an Event that is a book":                 {verb: "POST", path: core + "/namespaces/karmada-es-newcomer/events", body: event("karmada-es-newcomer", "Work", "own", strings.Repeat("a", 10000))},
		"ask for a certificate with a book":             {verb: "POST", path: signing, body: named("CertificateSigningRequest", "certificates.k8s.io/v1", "book", `,"spec":{"signerName":"kubernetes.io/kube-apiserver-client","usages":["client auth"],"request":"`+base64.StdEncoding.EncodeToString(make([]byte, 20000))+`"}`)},
		"keep an Event":                                 {verb: "POST", path: core + "/namespaces/karmada-es-newcomer/events", body: with(event("karmada-es-newcomer", "Work", "own", ""), keeps)},
		"own an Event":                                  {verb: "POST", path: core + "/namespaces/karmada-es-newcomer/events", body: with(event("karmada-es-newcomer", "Work", "own", ""), owns)},
		"write an Event about a path that is a book":    {verb: "POST", path: core + "/namespaces/karmada-es-newcomer/events", body: strings.Replace(event("karmada-es-newcomer", "Work", "own", ""), `"involvedObject":{`, `"involvedObject":{"fieldPath":"`+strings.Repeat("a", 20000)+`",`, 1)},
		"report a book":                                 {verb: "PATCH", path: ownWorks + "/own/status", body: `{"status":{"manifestStatuses":[{"identifier":{"ordinal":0,"version":"v1","kind":"ConfigMap","resource":"configmaps","namespace":"a","name":"a"},"status":{"a":"` + strings.Repeat("a", 60000) + `"}}]}}`},
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
		"be the one who makes roles of agents":    {verb: "GET", path: clusters + "/member1", as: rest.ImpersonationConfig{UserName: agents.GeneratorUser}},
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
		&workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: agents.ExecutionNamespace(newcomer), Name: "own", Finalizers: []string{"theirs.example.com/x"}}},
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: member1}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: newcomer}, Data: token},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: newcomer + "-impersonator"}, Data: token},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: agents.RoleName(member1)}},
	}
}

// agentMayNot attacks with the certificate of the agent of the newcomer, whose
// Cluster is there.
func agentMayNot(t *testing.T, env *testenv.Env, config *rest.Config) {
	for _, victim := range victims() {
		cleanUp(t, env, victim)
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
	agentReportsOnWorks(t, config)
	agentDoesNotFillTheStore(t, env)
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
	// What others hold of the Work would keep its cluster.
	testenv.Update(t, env.Karmada, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: agents.ExecutionNamespace(newcomer), Name: "own"}},
		func(w *workv1alpha1.Work) { w.Finalizers = nil })
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
	env := alone(t)
	config := holding(env, newToken(t, env, bootstraptoken.Token{}))
	testenv.Eventually(t, "the token is accepted", func(ctx context.Context) error {
		return attack{verb: "GET", path: signing}.try(ctx, config)
	})
	for what, attack := range attacks() {
		if attack.path == signing {
			continue // The holder of a token asks for a certificate and looks for it.
		}
		t.Run(what, func(t *testing.T) {
			if err := attack.try(t.Context(), config); !apierrors.IsForbidden(err) {
				t.Errorf("the answer is %v", err)
			}
		})
	}
}

// agentReportsOnWorks does what the agent of this release and that of the reference do
// with their Works.
func agentReportsOnWorks(t *testing.T, config *rest.Config) {
	t.Helper()
	for _, each := range []struct {
		what string
		attack
	}{
		{"report on its Work", attack{verb: "PATCH", path: ownWorks + "/own/status", body: `{"status":{"conditions":[{"type":"Applied","status":"True","reason":"AppliedSuccessful","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`}},
		{"hold its Work", attack{verb: "PATCH", path: ownWorks + "/own", body: `{"metadata":{"finalizers":["theirs.example.com/x","karmada.io/execution-controller"]}}`}},
		{"release its Work", attack{verb: "PATCH", path: ownWorks + "/own", body: `{"metadata":{"finalizers":["theirs.example.com/x"]}}`}},
		{"tell what happened to its Work", attack{verb: "POST", path: core + "/namespaces/karmada-es-newcomer/events", body: `{"apiVersion":"v1","kind":"Event","metadata":{"name":"good","namespace":"karmada-es-newcomer"},"involvedObject":{"kind":"Work","namespace":"karmada-es-newcomer","name":"own"},"reason":"r","type":"Normal"}`}},
		{"tell what happened to its cluster", attack{verb: "POST", path: core + "/namespaces/default/events", body: `{"apiVersion":"v1","kind":"Event","metadata":{"name":"newcomer.1","namespace":"default"},"involvedObject":{"kind":"Cluster","name":"newcomer"},"reason":"r","type":"Normal"}`}},
		{"tell that it leads", attack{verb: "POST", path: core + "/namespaces/karmada-system/events", body: `{"apiVersion":"v1","kind":"Event","metadata":{"name":"karmada-agent-newcomer.1","namespace":"karmada-system"},"involvedObject":{"kind":"Lease","namespace":"karmada-system","name":"karmada-agent-newcomer"},"reason":"LeaderElection","type":"Normal"}`}},
		{"say where it is reached", attack{verb: "PATCH", path: clusters + "/newcomer", body: `{"spec":{"insecureSkipTLSVerification":true}}`}},
		{"say where it is reached as before", attack{verb: "PATCH", path: clusters + "/newcomer", body: `{"spec":{"insecureSkipTLSVerification":false}}`}},
	} {
		t.Run("the agent may "+each.what, func(t *testing.T) {
			if err := each.try(t.Context(), config); err != nil {
				t.Error(err)
			}
		})
	}
}

// agentDoesNotFillTheStore asks for certificates without end. It does so by a name of
// its own, for the quota of an agent outlives its cluster.
func agentDoesNotFillTheStore(t *testing.T, env *testenv.Env) {
	const flooder = "flooder"
	config := rest.CopyConfig(env.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: agents.User(flooder), Groups: []string{agents.Group, "system:masters"}}
	for what, keep := range map[string]func(client.Object){
		"a request that is kept": func(o client.Object) { o.SetFinalizers([]string{"mine.example.com/x"}) },
		"a request that is owned": func(o client.Object) {
			o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: "x", UID: "x"}})
		},
	} {
		t.Run(what, func(t *testing.T) {
			request := signingRequest(t, "flood-kept", agents.User(flooder))
			keep(request)
			if err := as(t, env, config).Create(t.Context(), request); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "owners or finalizers") {
				t.Error(err)
			}
		})
	}
	t.Run("certificates without end", func(t *testing.T) {
		const tries = 30
		asked := 0
		karmada := as(t, env, config)
		for i := range tries {
			request := signingRequest(t, fmt.Sprintf("flood-%d", i), agents.User(flooder))
			cleanUp(t, env, request)
			err := karmada.Create(t.Context(), request)
			switch {
			case err == nil:
				asked++
			case !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "try again later"):
				t.Fatal(err)
			}
		}
		if asked == 0 || asked >= tries {
			t.Errorf("%d of %d requests were stored", asked, tries)
		}
	})
}
