//! When an answer may be heard: never before the sync that makes true what it says.
