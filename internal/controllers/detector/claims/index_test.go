package claims

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"karmada.io/karmada/internal/controllers/detector/templates"
	"karmada.io/karmada/internal/domain/policy"
)

var deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

func sortedNames(all []templates.Ref) []string {
	var texts []string
	for _, r := range all {
		texts = append(texts, r.String())
	}
	slices.Sort(texts)
	return texts
}

func TestClaimIndexFollowsTemplates(t *testing.T) {
	claimedBy := func(id string) metav1.Object {
		object := templates.NewObject(deployments)
		policy.Claim{Namespace: "shop", Name: "p", ID: id}.Apply(object)
		return object
	}
	c := NewIndex()
	web, db := templates.NewRef(deployments, "shop", "web"), templates.NewRef(deployments, "shop", "db")
	c.Update(web, claimedBy("one"))
	c.Update(db, claimedBy("one"))
	c.Update(db, claimedBy("two"))
	if diff := cmp.Diff([]string{"Deployment shop/web"}, sortedNames(c.TemplatesOf("one"))); diff != "" {
		t.Errorf("after another policy claimed a template (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Deployment shop/db"}, sortedNames(c.TemplatesOf("two"))); diff != "" {
		t.Errorf("the other policy (-want +got):\n%s", diff)
	}
	c.Update(web, templates.NewObject(deployments))
	c.Delete(db)
	if len(c.byID) != 0 || len(c.byTemplate) != 0 {
		t.Errorf("still holding %v and %v of released and deleted templates", c.byID, c.byTemplate)
	}
	c.Update(web, claimedBy("one"))
	c.DeleteKind(deployments)
	if got := c.TemplatesOf("one"); len(got) != 0 {
		t.Errorf("still holding %v of a removed kind", got)
	}
}
