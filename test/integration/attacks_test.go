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
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/testenv"
)

// attack is a request that the API server must reject. If body is empty, the request has no body.
type attack struct {
	verb, path, body string
	// impersonation is the user that the agent impersonates. Empty means that the agent acts as
	// itself.
	impersonation rest.ImpersonationConfig
}

// Paths of the APIs that the attacks call.
const (
	coreAPIPath          = "/api/v1"
	clustersPath         = "/apis/cluster.karmada.io/v1alpha1/clusters"
	member1WorksPath     = "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-member1/works"
	ownWorksPath         = "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-newcomer/works"
	namespacedLeasesPath = "/apis/coordination.k8s.io/v1/namespaces/"
	rbacAPIPath          = "/apis/rbac.authorization.k8s.io/v1"
	signingRequestsPath  = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	policyAPIPath        = "/apis/policy.karmada.io/v1alpha1"
)

// attackCases returns the attacks of the agent of the newcomer on other clusters and on the
// control plane.
func attackCases() map[string]attack {
	allRules := `"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]`
	adminBinding := `"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"` + agents.User(newcomer) + `"}]`
	objectJSON := func(kind, apiVersion, name, rest string) string {
		return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q}%s}`, apiVersion, kind, name, rest)
	}
	eventJSON := func(namespace, kind, name, message string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Event","metadata":{"name":"e","namespace":%[1]q},"involvedObject":{"kind":%[2]q,"namespace":%[4]q,"name":%[3]q},"reason":"r","message":%[5]q,"type":"Normal"}`,
			namespace, kind, name, map[bool]string{true: "", false: namespace}[namespace == "default"], message)
	}
	withMetadata := func(body, metadata string) string {
		return strings.Replace(body, `"metadata":{`, `"metadata":{`+metadata+`,`, 1)
	}
	const finalizersField, ownersField = `"finalizers":["mine.example.com/x"]`, `"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"x","uid":"x"}]`
	const rbacVersion, policyVersion = "rbac.authorization.k8s.io/v1", "policy.karmada.io/v1alpha1"
	return map[string]attack{
		"read a Work of another cluster":                         {verb: "GET", path: member1WorksPath + "/victim"},
		"list the Works of another cluster":                      {verb: "GET", path: member1WorksPath},
		"watch the Works of another cluster":                     {verb: "GET", path: member1WorksPath + "?watch=true"},
		"list the Works of all clusters":                         {verb: "GET", path: "/apis/work.karmada.io/v1alpha1/works"},
		"create a Work of another cluster":                       {verb: "POST", path: member1WorksPath, body: objectJSON("Work", "work.karmada.io/v1alpha1", "mine", "")},
		"change a Work of another cluster":                       {verb: "PATCH", path: member1WorksPath + "/victim", body: `{"spec":{"workload":{"manifests":[]}}}`},
		"write the status of a Work of another cluster":          {verb: "PATCH", path: member1WorksPath + "/victim/status", body: `{"status":{"conditions":[]}}`},
		"delete a Work of another cluster":                       {verb: "DELETE", path: member1WorksPath + "/victim"},
		"delete all Works of another cluster":                    {verb: "DELETE", path: member1WorksPath},
		"list bindings":                                          {verb: "GET", path: "/apis/work.karmada.io/v1alpha2/resourcebindings"},
		"read another Cluster":                                   {verb: "GET", path: clustersPath + "/member1"},
		"list all Clusters":                                      {verb: "GET", path: clustersPath},
		"watch all Clusters":                                     {verb: "GET", path: clustersPath + "?watch=true"},
		"watch another Cluster":                                  {verb: "GET", path: clustersPath + "?watch=true&fieldSelector=metadata.name%3Dmember1"},
		"create another Cluster":                                 {verb: "POST", path: clustersPath, body: objectJSON("Cluster", "cluster.karmada.io/v1alpha1", "other", `,"spec":{"syncMode":"Pull"}`)},
		"change another Cluster":                                 {verb: "PATCH", path: clustersPath + "/member1", body: `{"spec":{"apiEndpoint":"https://192.0.2.1"}}`},
		"write the status of another Cluster":                    {verb: "PATCH", path: clustersPath + "/member1/status", body: `{"status":{"kubernetesVersion":"v0"}}`},
		"delete another Cluster":                                 {verb: "DELETE", path: clustersPath + "/member1"},
		"delete all Clusters":                                    {verb: "DELETE", path: clustersPath},
		"change its sync mode to push":                           {verb: "PATCH", path: clustersPath + "/newcomer", body: `{"spec":{"syncMode":"Push"}}`},
		"refer to the credentials of another cluster":            {verb: "PATCH", path: clustersPath + "/newcomer", body: `{"spec":{"secretRef":{"namespace":"karmada-cluster","name":"member1"}}}`},
		"refer to a Secret in another namespace":                 {verb: "PATCH", path: clustersPath + "/newcomer", body: `{"spec":{"secretRef":{"namespace":"default","name":"newcomer"}}}`},
		"refer to an impersonator Secret in another namespace":   {verb: "PATCH", path: clustersPath + "/newcomer", body: `{"spec":{"impersonatorSecretRef":{"namespace":"default","name":"newcomer-impersonator"}}}`},
		"make the control plane connect to the metadata service": {verb: "PATCH", path: clustersPath + "/newcomer", body: `{"spec":{"apiEndpoint":"https://169.254.169.254"}}`},
		"make the control plane connect without TLS":             {verb: "PATCH", path: clustersPath + "/newcomer", body: `{"spec":{"apiEndpoint":"http://192.0.2.1"}}`},
		"make the control plane connect through a proxy":         {verb: "PATCH", path: clustersPath + "/newcomer", body: `{"spec":{"proxyURL":"http://169.254.169.254"}}`},
		"change the labels of its Cluster":                       {verb: "PATCH", path: clustersPath + "/newcomer", body: `{"metadata":{"labels":{"tier":"gold"}}}`},
		"set annotations of its Cluster":                         {verb: "PATCH", path: clustersPath + "/newcomer", body: `{"metadata":{"annotations":{"cluster.karmada.io/declared-dead":"true"}}}`},
		"remove the finalizer of its Cluster":                    {verb: "PATCH", path: clustersPath + "/newcomer", body: `{"metadata":{"finalizers":[]}}`},
		"change the taints of its Cluster":                       {verb: "PATCH", path: clustersPath + "/newcomer", body: `{"spec":{"taints":[{"key":"a","effect":"NoSchedule"}]}}`},
		"change its region, zones and provider":                  {verb: "PATCH", path: clustersPath + "/newcomer", body: `{"spec":{"region":"mars","zones":["a"],"provider":"x"}}`},
		"change its cluster ID":                                  {verb: "PATCH", path: clustersPath + "/newcomer", body: `{"spec":{"id":"11111111-2222-3333-4444-555555555555"}}`},
		"change its resource models":                             {verb: "PATCH", path: clustersPath + "/newcomer", body: `{"spec":{"resourceModels":null}}`},
		"delete its Cluster and orphan its RBAC objects":         {verb: "DELETE", path: clustersPath + "/newcomer", body: `{"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Orphan"}`},
		"report too many nodes":                                  {verb: "PATCH", path: clustersPath + "/newcomer/status", body: `{"status":{"resourceSummary":{"allocatableModelings":[{"grade":8,"count":2147483647}]}}}`},
		"report a negative quantity":                             {verb: "PATCH", path: clustersPath + "/newcomer/status", body: `{"status":{"resourceSummary":{"allocated":{"cpu":"-1000"}}}}`},
		"write status fields of the control plane":               {verb: "PATCH", path: clustersPath + "/newcomer/status", body: `{"status":{"remedyActions":["TrafficControl"]}}`},
		"create a Work for itself":                               {verb: "POST", path: ownWorksPath, body: objectJSON("Work", "work.karmada.io/v1alpha1", "mine", `,"spec":{"workload":{"manifests":[]}}`)},
		"change the spec of its Work":                            {verb: "PATCH", path: ownWorksPath + "/own", body: `{"spec":{"suspendDispatching":true}}`},
		"change the labels of its Work":                          {verb: "PATCH", path: ownWorksPath + "/own", body: `{"metadata":{"labels":{"mine":"yes"}}}`},
		"confirm a held deletion by annotation":                  {verb: "PATCH", path: ownWorksPath + "/own", body: `{"metadata":{"annotations":{"work.karmada.io/x":"yes"}}}`},
		"add a foreign finalizer to its Work":                    {verb: "PATCH", path: ownWorksPath + "/own", body: `{"metadata":{"finalizers":["karmada.io/execution-controller","mine.example.com/x"]}}`},
		"remove a foreign finalizer from its Work":               {verb: "PATCH", path: ownWorksPath + "/own", body: `{"metadata":{"finalizers":[]}}`},
		"add an owner to its Work":                               {verb: "PATCH", path: ownWorksPath + "/own", body: `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"x","uid":"x"}]}}`},
		"write an Event in another namespace":                    {verb: "POST", path: coreAPIPath + "/namespaces/karmada-es-member1/events", body: eventJSON("karmada-es-member1", "Work", "victim", "")},
		"write an Event about another Cluster":                   {verb: "POST", path: coreAPIPath + "/namespaces/default/events", body: eventJSON("default", "Cluster", "member1", "")},
		"write an Event with events.k8s.io":                      {verb: "POST", path: "/apis/events.k8s.io/v1/namespaces/default/events", body: `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"e","namespace":"default"},"eventTime":"2026-01-01T00:00:00.000000Z","action":"a","reason":"r","type":"Normal","reportingController":"a/b","reportingInstance":"c","regarding":{"kind":"Cluster","name":"member1"}}`},
		"write an Event with a too long message":                 {verb: "POST", path: coreAPIPath + "/namespaces/karmada-es-newcomer/events", body: eventJSON("karmada-es-newcomer", "Work", "own", strings.Repeat("a", 10000))},
		"create a too large signing request":                     {verb: "POST", path: signingRequestsPath, body: objectJSON("CertificateSigningRequest", "certificates.k8s.io/v1", "book", `,"spec":{"signerName":"kubernetes.io/kube-apiserver-client","usages":["client auth"],"request":"`+base64.StdEncoding.EncodeToString(make([]byte, 20000))+`"}`)},
		"write an Event with finalizers":                         {verb: "POST", path: coreAPIPath + "/namespaces/karmada-es-newcomer/events", body: withMetadata(eventJSON("karmada-es-newcomer", "Work", "own", ""), finalizersField)},
		"write an Event with owners":                             {verb: "POST", path: coreAPIPath + "/namespaces/karmada-es-newcomer/events", body: withMetadata(eventJSON("karmada-es-newcomer", "Work", "own", ""), ownersField)},
		"write an Event with a too long field path":              {verb: "POST", path: coreAPIPath + "/namespaces/karmada-es-newcomer/events", body: strings.Replace(eventJSON("karmada-es-newcomer", "Work", "own", ""), `"involvedObject":{`, `"involvedObject":{"fieldPath":"`+strings.Repeat("a", 20000)+`",`, 1)},
		"report a too large status":                              {verb: "PATCH", path: ownWorksPath + "/own/status", body: `{"status":{"manifestStatuses":[{"identifier":{"ordinal":0,"version":"v1","kind":"ConfigMap","resource":"configmaps","namespace":"a","name":"a"},"status":{"a":"` + strings.Repeat("a", 60000) + `"}}]}}`},
		"proxy to another member":                                {verb: "GET", path: clustersPath + "/member1/proxy/api/v1/secrets"},
		"run a command in another member":                        {verb: "POST", path: clustersPath + "/member1/proxy/api/v1/namespaces/default/pods/web/exec?command=sh"},
		"proxy to all members":                                   {verb: "GET", path: clustersPath + "/*/proxy/api/v1/secrets"},
		"read the credentials of another cluster":                {verb: "GET", path: coreAPIPath + "/namespaces/karmada-cluster/secrets/member1"},
		"list the credentials of clusters":                       {verb: "GET", path: coreAPIPath + "/namespaces/karmada-cluster/secrets"},
		"list all Secrets":                                       {verb: "GET", path: coreAPIPath + "/secrets"},
		"change the credentials of another cluster":              {verb: "PATCH", path: coreAPIPath + "/namespaces/karmada-cluster/secrets/member1", body: `{"data":{"token":"bWluZQ=="}}`},
		"delete the credentials of another cluster":              {verb: "DELETE", path: coreAPIPath + "/namespaces/karmada-cluster/secrets/member1"},
		"create a Secret for another cluster":                    {verb: "POST", path: coreAPIPath + "/namespaces/karmada-cluster/secrets", body: objectJSON("Secret", "v1", "other", `,"type":"Opaque"`)},
		"create the impersonator Secret of another cluster":      {verb: "POST", path: coreAPIPath + "/namespaces/karmada-cluster/secrets", body: objectJSON("Secret", "v1", "other-impersonator", `,"type":"Opaque"`)},
		"create a service account token Secret": {
			verb: "POST", path: coreAPIPath + "/namespaces/karmada-cluster/secrets",
			body: `{"apiVersion":"v1","kind":"Secret","type":"kubernetes.io/service-account-token","metadata":{"name":"newcomer-impersonator","annotations":{"kubernetes.io/service-account.name":"default"}}}`,
		},
		"request a service account token":                 {verb: "POST", path: coreAPIPath + "/namespaces/kube-system/serviceaccounts/default/token", body: `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`},
		"read bootstrap tokens":                           {verb: "GET", path: coreAPIPath + "/namespaces/kube-system/secrets"},
		"create a bootstrap token":                        {verb: "POST", path: coreAPIPath + "/namespaces/kube-system/secrets", body: objectJSON("Secret", "v1", "bootstrap-token-abcdef", `,"type":"bootstrap.kubernetes.io/token"`)},
		"review a token":                                  {verb: "POST", path: "/apis/authentication.k8s.io/v1/tokenreviews", body: `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"x"}}`},
		"list namespaces":                                 {verb: "GET", path: coreAPIPath + "/namespaces"},
		"read the namespace of another cluster":           {verb: "GET", path: coreAPIPath + "/namespaces/karmada-es-member1"},
		"create a namespace":                              {verb: "POST", path: coreAPIPath + "/namespaces", body: objectJSON("Namespace", "v1", "karmada-es-other", "")},
		"delete its namespace":                            {verb: "DELETE", path: coreAPIPath + "/namespaces/karmada-es-newcomer"},
		"change cluster-info":                             {verb: "PATCH", path: coreAPIPath + "/namespaces/kube-public/configmaps/cluster-info", body: `{"data":{}}`},
		"renew the Lease of another cluster":              {verb: "PATCH", path: namespacedLeasesPath + "karmada-cluster/leases/member1", body: `{"spec":{"holderIdentity":"me"}}`},
		"create the Lease of another cluster":             {verb: "POST", path: namespacedLeasesPath + "karmada-cluster/leases", body: objectJSON("Lease", "coordination.k8s.io/v1", "member2", "")},
		"take the Lease of a component":                   {verb: "POST", path: namespacedLeasesPath + "karmada-system/leases", body: objectJSON("Lease", "coordination.k8s.io/v1", "not-mine", "")},
		"take the leader election Lease of another agent": {verb: "POST", path: namespacedLeasesPath + "karmada-system/leases", body: objectJSON("Lease", "coordination.k8s.io/v1", "karmada-agent-member1", "")},
		"create a Lease in another namespace":             {verb: "POST", path: namespacedLeasesPath + "kube-system/leases", body: objectJSON("Lease", "coordination.k8s.io/v1", newcomer, "")},
		"delete a Lease":                                  {verb: "DELETE", path: namespacedLeasesPath + "karmada-cluster/leases/member1"},
		"create a ClusterRole":                            {verb: "POST", path: rbacAPIPath + "/clusterroles", body: objectJSON("ClusterRole", rbacVersion, "mine", ","+allRules)},
		"create a Role in its namespace":                  {verb: "POST", path: rbacAPIPath + "/namespaces/karmada-es-newcomer/roles", body: objectJSON("Role", rbacVersion, "mine", ","+allRules)},
		"bind itself to cluster-admin":                    {verb: "POST", path: rbacAPIPath + "/clusterrolebindings", body: objectJSON("ClusterRoleBinding", rbacVersion, "mine", ","+adminBinding)},
		"bind itself to cluster-admin in its namespace":   {verb: "POST", path: rbacAPIPath + "/namespaces/karmada-es-newcomer/rolebindings", body: objectJSON("RoleBinding", rbacVersion, "mine", ","+adminBinding)},
		"extend its own ClusterRole":                      {verb: "PATCH", path: rbacAPIPath + "/clusterroles/system:karmada:newcomer:agent", body: "{" + allRules + "}"},
		"extend its own Role for Secrets":                 {verb: "PATCH", path: rbacAPIPath + "/namespaces/karmada-cluster/roles/system:karmada:newcomer:agent-secret", body: "{" + allRules + "}"},
		"delete the ClusterRole of another agent":         {verb: "DELETE", path: rbacAPIPath + "/clusterroles/system:karmada:member1:agent"},
		"delete the ClusterRole of a component":           {verb: "DELETE", path: rbacAPIPath + "/clusterroles/system:karmada:agent-rbac-generator"},
		"impersonate an administrator":                    {verb: "GET", path: clustersPath, impersonation: rest.ImpersonationConfig{UserName: "system:admin", Groups: []string{"system:masters"}}},
		"impersonate another agent":                       {verb: "GET", path: member1WorksPath, impersonation: rest.ImpersonationConfig{UserName: agents.User(member1), Groups: []string{agents.Group}}},
		"impersonate the RBAC generator":                  {verb: "GET", path: clustersPath + "/member1", impersonation: rest.ImpersonationConfig{UserName: agents.GeneratorUser}},
		"impersonate itself with more groups":             {verb: "GET", path: clustersPath, impersonation: rest.ImpersonationConfig{UserName: agents.User(newcomer), Groups: []string{"system:masters"}}},
		"list signing requests":                           {verb: "GET", path: signingRequestsPath},
		"delete a signing request":                        {verb: "DELETE", path: signingRequestsPath + "/any"},
		"approve a signing request":                       {verb: "PUT", path: signingRequestsPath + "/any/approval", body: objectJSON("CertificateSigningRequest", "certificates.k8s.io/v1", "any", "")},
		"issue a certificate":                             {verb: "PUT", path: signingRequestsPath + "/any/status", body: objectJSON("CertificateSigningRequest", "certificates.k8s.io/v1", "any", "")},
		"create a ClusterPropagationPolicy":               {verb: "POST", path: policyAPIPath + "/clusterpropagationpolicies", body: objectJSON("ClusterPropagationPolicy", policyVersion, "mine", "")},
		"create an OverridePolicy":                        {verb: "POST", path: policyAPIPath + "/namespaces/default/overridepolicies", body: objectJSON("OverridePolicy", policyVersion, "mine", "")},
		"register an interpreter webhook":                 {verb: "POST", path: "/apis/config.karmada.io/v1alpha1/resourceinterpreterwebhookconfigurations", body: objectJSON("ResourceInterpreterWebhookConfiguration", "config.karmada.io/v1alpha1", "mine", "")},
		"register an admission webhook":                   {verb: "POST", path: "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", body: objectJSON("MutatingWebhookConfiguration", "admissionregistration.k8s.io/v1", "mine", "")},
		"delete the admission policy binding for agents":  {verb: "DELETE", path: "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/karmada-agent"},
		"change an APIService":                            {verb: "PATCH", path: "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.cluster.karmada.io", body: `{"spec":{"insecureSkipTLSVerify":true}}`},
		"read metrics":                                    {verb: "GET", path: "/metrics"},
	}
}

// send sends the request and returns the error of the API server.
func (a attack) send(ctx context.Context, agentConfig *rest.Config) error {
	config := rest.CopyConfig(agentConfig)
	config.Impersonate = a.impersonation
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

// newAttackTargets returns the objects that the attacks need and that a new control plane does
// not have.
func newAttackTargets() []client.Object {
	token := map[string][]byte{"token": []byte("secret")}
	return []client.Object{
		&workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.ExecutionNamespace(member1), Name: "victim"}},
		&workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.ExecutionNamespace(newcomer), Name: "own", Finalizers: []string{"theirs.example.com/x"}}},
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: member1}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: newcomer}, Data: token},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: newcomer + "-impersonator"}, Data: token},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: agents.RoleName(member1)}},
	}
}

// testAgentAttacks sends all attacks with the certificate of the agent of the newcomer. The
// Cluster of the newcomer exists.
func testAgentAttacks(t *testing.T, env *testenv.Env, config *rest.Config) {
	for _, victim := range newAttackTargets() {
		cleanUp(t, env, victim)
		if err := env.Karmada.Create(t.Context(), victim); err != nil {
			t.Fatal(err)
		}
	}
	secretBefore := await(t, env.Karmada, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: member1}}, exists)
	clusterBefore := await(t, env.Karmada, clusterNamed(newcomer), exists)
	for description, attack := range attackCases() {
		t.Run(description, func(t *testing.T) {
			err := attack.send(t.Context(), config)
			if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
				t.Errorf("got %v, want Forbidden or Invalid", err)
			}
		})
	}
	testAllowedAgentRequests(t, config)
	testSigningRequestLimits(t, env)
	t.Run("a status report changes only the status", func(t *testing.T) {
		report := attack{verb: "PATCH", path: clustersPath + "/newcomer/status", body: `{"metadata":{"labels":{"mine":"yes"}},"spec":{"syncMode":"Push","secretRef":{"namespace":"karmada-cluster","name":"member1"}}}`}
		if err := report.send(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		now := await(t, env.Karmada, clusterNamed(newcomer), exists)
		if err := checkEqual("spec and labels", []any{clusterBefore.Spec, clusterBefore.Labels}, []any{now.Spec, now.Labels}); err != nil {
			t.Error(err)
		}
	})
	// Remove the foreign finalizer of the Work, because it would block the deletion of the Cluster.
	testenv.Update(t, env.Karmada, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.ExecutionNamespace(newcomer), Name: "own"}},
		func(w *workv1alpha1.Work) { w.Finalizers = nil })
	t.Run("objects of other clusters are unchanged", func(t *testing.T) {
		now := await(t, env.Karmada, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secretBefore.Namespace, Name: secretBefore.Name}}, exists)
		if !bytes.Equal(now.Data[clusterv1alpha1.SecretTokenKey], secretBefore.Data[clusterv1alpha1.SecretTokenKey]) {
			t.Error("the credentials of another cluster were changed")
		}
		for _, victim := range append(newAttackTargets(), clusterNamed(member1), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: work.ExecutionNamespace(newcomer)}}) {
			found := await(t, env.Karmada, victim, exists)
			if found.GetDeletionTimestamp() != nil {
				t.Errorf("%T %s is being deleted", found, found.GetName())
			}
		}
	})
}

// TestBootstrapTokenOnlyPermitsRegistration sends all attacks with a bootstrap token. They must
// fail except those that registration needs.
func TestBootstrapTokenOnlyPermitsRegistration(t *testing.T) {
	env := joining(t)
	config := tokenConfig(env, newBootstrapToken(t, env, registration.Token{}))
	testenv.Eventually(t, "the token is accepted", func(ctx context.Context) error {
		return attack{verb: "GET", path: signingRequestsPath}.send(ctx, config)
	})
	for description, attack := range attackCases() {
		if attack.path == signingRequestsPath {
			continue // Registration needs this request.
		}
		t.Run(description, func(t *testing.T) {
			if err := attack.send(t.Context(), config); !apierrors.IsForbidden(err) {
				t.Errorf("got %v, want Forbidden or Invalid", err)
			}
		})
	}
}

// testAllowedAgentRequests sends the requests that the agent of this release and of upstream
// need. All must be allowed.
func testAllowedAgentRequests(t *testing.T, config *rest.Config) {
	t.Helper()
	for _, allowed := range []struct {
		description string
		attack
	}{
		{"write the status of its Work", attack{verb: "PATCH", path: ownWorksPath + "/own/status", body: `{"status":{"conditions":[{"type":"Applied","status":"True","reason":"AppliedSuccessful","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`}},
		{"add its finalizer to its Work", attack{verb: "PATCH", path: ownWorksPath + "/own", body: `{"metadata":{"finalizers":["theirs.example.com/x","karmada.io/execution-controller"]}}`}},
		{"remove its finalizer from its Work", attack{verb: "PATCH", path: ownWorksPath + "/own", body: `{"metadata":{"finalizers":["theirs.example.com/x"]}}`}},
		{"write an Event about its Work", attack{verb: "POST", path: coreAPIPath + "/namespaces/karmada-es-newcomer/events", body: `{"apiVersion":"v1","kind":"Event","metadata":{"name":"good","namespace":"karmada-es-newcomer"},"involvedObject":{"kind":"Work","namespace":"karmada-es-newcomer","name":"own"},"reason":"r","type":"Normal"}`}},
		{"write an Event about its Cluster", attack{verb: "POST", path: coreAPIPath + "/namespaces/default/events", body: `{"apiVersion":"v1","kind":"Event","metadata":{"name":"newcomer.1","namespace":"default"},"involvedObject":{"kind":"Cluster","name":"newcomer"},"reason":"r","type":"Normal"}`}},
		{"write an Event about its leader election", attack{verb: "POST", path: coreAPIPath + "/namespaces/karmada-system/events", body: `{"apiVersion":"v1","kind":"Event","metadata":{"name":"karmada-agent-newcomer.1","namespace":"karmada-system"},"involvedObject":{"kind":"Lease","namespace":"karmada-system","name":"karmada-agent-newcomer"},"reason":"LeaderElection","type":"Normal"}`}},
		{"change the TLS verification of its endpoint", attack{verb: "PATCH", path: clustersPath + "/newcomer", body: `{"spec":{"insecureSkipTLSVerification":true}}`}},
		{"change the TLS verification of its endpoint back", attack{verb: "PATCH", path: clustersPath + "/newcomer", body: `{"spec":{"insecureSkipTLSVerification":false}}`}},
	} {
		t.Run("the agent may "+allowed.description, func(t *testing.T) {
			if err := allowed.send(t.Context(), config); err != nil {
				t.Error(err)
			}
		})
	}
}

// testSigningRequestLimits creates many signing requests until the API server rejects them. It
// uses a separate agent name because the quota of an agent is kept when its cluster is deleted.
func testSigningRequestLimits(t *testing.T, env *testenv.Env) {
	const flooder = "flooder"
	config := rest.CopyConfig(env.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: agents.User(flooder), Groups: []string{agents.Group, "system:masters"}}
	for description, protectFromDeletion := range map[string]func(client.Object){
		"a signing request with finalizers": func(o client.Object) { o.SetFinalizers([]string{"mine.example.com/x"}) },
		"a signing request with owners": func(o client.Object) {
			o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: "x", UID: "x"}})
		},
	} {
		t.Run(description, func(t *testing.T) {
			request := newSigningRequest(t, "flood-kept", agents.User(flooder))
			protectFromDeletion(request)
			if err := newClientFor(t, env, config).Create(t.Context(), request); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "owners or finalizers") {
				t.Error(err)
			}
		})
	}
	t.Run("signing requests above the quota", func(t *testing.T) {
		const tries = 30
		storedRequests := 0
		karmada := newClientFor(t, env, config)
		for i := range tries {
			request := newSigningRequest(t, fmt.Sprintf("flood-%d", i), agents.User(flooder))
			cleanUp(t, env, request)
			err := karmada.Create(t.Context(), request)
			switch {
			case err == nil:
				storedRequests++
			case !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "try again later"):
				t.Fatal(err)
			}
		}
		if storedRequests == 0 || storedRequests >= tries {
			t.Errorf("%d of %d requests were stored", storedRequests, tries)
		}
	})
}
