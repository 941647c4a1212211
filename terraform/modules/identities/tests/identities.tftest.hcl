mock_provider "aws" {}

variables {
  bucket_arn        = "arn:aws:s3:::trawl-indexes"
  oidc_provider_arn = "arn:aws:iam::111122223333:oidc-provider/oidc.example.org/id/1"
  oidc_issuer       = "https://oidc.example.org/id/1"
}

run "each_role_may_do_its_work_only" {
  assert {
    condition     = jsondecode(aws_iam_role_policy.this["searcher"].policy).Statement[0].Action == ["s3:GetObject"]
    error_message = "Searchers only read."
  }
  assert {
    condition     = contains(jsondecode(aws_iam_role_policy.this["indexer"].policy).Statement[0].Action, "s3:PutObject")
    error_message = "Indexers cannot write."
  }
  assert {
    condition     = !contains(jsondecode(aws_iam_role_policy.this["gc"].policy).Statement[0].Action, "s3:PutObject")
    error_message = "Who collects garbage need not write."
  }
  assert {
    condition = alltrue(flatten([for p in aws_iam_role_policy.this : [
      for s in jsondecode(p.policy).Statement : !strcontains(jsonencode(s.Action), "*")
    ]]))
    error_message = "A role may do more than is named."
  }
  assert {
    condition     = jsondecode(aws_iam_role_policy.this["searcher"].policy).Statement[0].Resource == ["arn:aws:s3:::trawl-indexes/*"]
    error_message = "A role reaches other objects than those of the bucket."
  }
}

run "roles_are_for_their_service_accounts" {
  assert {
    condition = jsondecode(aws_iam_role.this["indexer"].assume_role_policy).Statement[0].Condition.StringEquals == {
      "oidc.example.org/id/1:sub" = "system:serviceaccount:trawl:trawl-indexer"
      "oidc.example.org/id/1:aud" = "sts.amazonaws.com"
    }
    error_message = "Another service account could take the role."
  }
  assert {
    condition     = output.annotations["searcher"]["eks.amazonaws.com/role-arn"] == aws_iam_role.this["searcher"].arn
    error_message = "The annotation names another role."
  }
}

run "a_prefix_and_a_key" {
  variables {
    prefix      = "code/"
    kms_key_arn = "arn:aws:kms:eu-central-1:111122223333:key/1"
  }
  assert {
    condition     = jsondecode(aws_iam_role_policy.this["indexer"].policy).Statement[0].Resource == ["arn:aws:s3:::trawl-indexes/code/*"]
    error_message = "The prefix does not bound the objects."
  }
  assert {
    condition     = jsondecode(aws_iam_role_policy.this["indexer"].policy).Statement[2].Resource == [var.kms_key_arn]
    error_message = "Indexers cannot use the key."
  }
}

run "inputs_are_checked" {
  command = plan
  variables {
    bucket_arn        = "trawl-indexes"
    prefix            = "code"
    oidc_provider_arn = "oidc.example.org"
    oidc_issuer       = "oidc.example.org"
    namespace         = "Trawl"
    service_accounts  = { router = "trawl-router" }
  }
  expect_failures = [var.bucket_arn, var.prefix, var.oidc_provider_arn, var.oidc_issuer, var.namespace, var.service_accounts]
}
