-- Module subsets: the workload of each subset of a UnitedDeployment.
local subsets = {}

-- podTemplate returns the Pod template of a UnitedDeployment. `spec.template` contains the template of
-- a workload of one of four kinds. A Pod template directly in `spec.template` is accepted too.
function subsets.podTemplate(object)
  local template = object.spec.template
  if type(template) ~= "table" then
    return nil
  end
  local workload = template.cloneSetTemplate or template.advancedStatefulSetTemplate
    or template.statefulSetTemplate or template.deploymentTemplate
  if type(workload) == "table" and type(workload.spec) == "table" then
    return workload.spec.template
  end
  return template
end

return subsets
